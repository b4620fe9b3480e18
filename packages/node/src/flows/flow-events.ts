import { type Clock, SandboxError } from "@sandpiper/core";
import type { FlowRecord, SandboxId } from "@sandpiper/protocol";
import type { EventLog, NewEvent } from "../records/event-log.ts";
import type { FlowWrite } from "./flow-table.ts";

/** How many events of one kind a quiet sandbox may cause at once, and then per minute. */
const BURST = 30;
const PER_MINUTE = 10;
/** The same host and port is reported once in this time. */
const REPEAT_MS = 60_000;
/** Bounds the memory of a sandbox that connects to ever new names, and of the node. */
const MAX_TARGETS = 256;
const MAX_METERS = 10_000;

type NetworkEventKind = "network.allowed" | "network.denied" | "network.asked";

export interface NetworkEvent {
  readonly kind: NetworkEventKind;
  readonly sandboxId: SandboxId;
  readonly tenant: string;
  /** Events with the same target are repetitions. */
  readonly target: string;
  readonly details: NonNullable<NewEvent["details"]>;
}

interface Meter {
  tokens: number;
  atMs: number;
  /** Events that were left out since the last one. */
  left: number;
  /** When each target was last reported. */
  readonly targets: Map<string, number>;
}

export interface FlowEventsOptions {
  readonly events: Pick<EventLog, "emit">;
  readonly clock: Clock;
  /** Called when an event could not be recorded. */
  readonly onError?: ((error: SandboxError) => void) | undefined;
}

/** Turns records into events, few enough that no sandbox pushes the others' events out of the log. */
export class FlowEvents {
  readonly #options: FlowEventsOptions;
  /** By sandbox and kind, in the order of their last use. */
  readonly #meters = new Map<string, Meter>();

  constructor(options: FlowEventsOptions) {
    this.#options = options;
  }

  /** Allowed queries are not reported: the connections that follow are. */
  add(writes: readonly FlowWrite[]): void {
    for (const { record, tenant, replaces } of writes) {
      const isNew = replaces === undefined;
      const isAllowed = record.decision === "allowed";
      if (!isNew || (isAllowed && record.kind === "query")) continue;
      this.emit({
        kind: isAllowed ? "network.allowed" : "network.denied",
        sandboxId: record.sandboxId,
        tenant,
        target: `${record.name ?? record.address} ${record.port ?? ""}`,
        details: detailsOf(record),
      });
    }
  }

  emit({ kind, sandboxId, tenant, target, details }: NetworkEvent): void {
    const meter = this.#meter(`${kind} ${sandboxId}`);
    const { events, clock, onError } = this.#options;
    const nowMs = clock.monotonicMs();
    const reportedAtMs = meter.targets.get(target);
    if (reportedAtMs !== undefined && nowMs - reportedAtMs < REPEAT_MS) return;
    if (meter.tokens < 1) {
      meter.left += 1;
      return;
    }
    meter.tokens -= 1;
    meter.targets.delete(target);
    meter.targets.set(target, nowMs);
    if (meter.targets.size > MAX_TARGETS) meter.targets.delete(meter.targets.keys().next().value as string);
    const left = meter.left === 0 ? {} : { notReported: meter.left };
    meter.left = 0;
    try {
      events.emit({ kind, tenant, sandboxId, details: { ...details, ...left } });
    } catch (thrown) {
      // A full disk must not end connections.
      onError?.(SandboxError.from(thrown));
    }
  }

  #meter(key: string): Meter {
    const nowMs = this.#options.clock.monotonicMs();
    const meter = this.#meters.get(key) ?? { tokens: BURST, atMs: nowMs, left: 0, targets: new Map() };
    meter.tokens = Math.min(BURST, meter.tokens + ((nowMs - meter.atMs) / 60_000) * PER_MINUTE);
    meter.atMs = nowMs;
    this.#meters.delete(key);
    this.#meters.set(key, meter);
    if (this.#meters.size > MAX_METERS) this.#meters.delete(this.#meters.keys().next().value as string);
    return meter;
  }
}

function detailsOf({ kind, name, address, port, pid, program, rule, suggestion, reason }: FlowRecord) {
  return { what: kind, name, address, port, pid, program, rule, suggestion, reason };
}
