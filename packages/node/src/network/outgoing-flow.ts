import { isIP, type Socket } from "node:net";
import type { GuestFlow } from "@sandpiper/core";
import { type FlowReason, type FlowRecord, parseHostName, ruleText } from "@sandpiper/protocol";
import { carryFlow } from "./carry-flow.ts";
import type { CompiledPolicy, Verdict } from "./compiled-policy.ts";
import { DialError, dial } from "./dialer.ts";
import type { EgressParts } from "./egress-parts.ts";
import type { FlowMeter } from "./flow-meter.ts";
import type { FlowRecords } from "./flow-records.ts";
import type { FlowOwner } from "./flow-sink.ts";
import type { FlowOutcome } from "./interceptor.ts";

export interface OutgoingFlowOptions {
  readonly guest: GuestFlow;
  readonly owner: FlowOwner;
  readonly parts: EgressParts;
  readonly policy: () => CompiledPolicy;
  readonly records: FlowRecords;
  readonly meter: FlowMeter;
}

/** Ends a flow before it has carried anything. */
class FlowEnd extends Error {
  readonly reason: FlowReason;

  constructor(reason: FlowReason) {
    super(`the flow was not connected: ${reason}`);
    this.reason = reason;
  }
}

/** Denials that a rule of the sandbox's policy would have prevented. */
const allowable: readonly (FlowReason | null)[] = ["rule", "default", "not_approved"];
/** Ends of flows that no policy or limit has refused. */
const innocent: readonly (FlowReason | null)[] = [
  null,
  "name_not_found",
  "resolution_failed",
  "connect_failed",
  "connect_timeout",
  "reset",
  "sandbox_ended",
  "intercept_failed",
];

/** One connection of a sandbox, from its announcement to its record. */
export class OutgoingFlow {
  readonly #options: OutgoingFlowOptions;
  /** Null for an address. */
  readonly #name: string | null;
  readonly #cut = new AbortController();
  readonly #startedAtMs: number;
  /** Aborted to decide again when the policy has changed. */
  #asking: AbortController | undefined;
  #verdict: Verdict | undefined;
  #isApproved = false;
  #isOpened = false;
  #record: FlowRecord;

  constructor(options: OutgoingFlowOptions) {
    this.#options = options;
    const { guest, records, parts } = options;
    this.#name = guest.name === null ? null : (parseHostName(guest.name) ?? null);
    const { name, port, pid, program } = guest;
    const address = name === null ? guest.address : null;
    this.#record = records.begin({ kind: "flow", decision: "denied", name, address, port, pid, program });
    this.#startedAtMs = parts.clock.monotonicMs();
  }

  /** Resolves when the flow has ended and is recorded; never rejects. */
  async run(): Promise<void> {
    const { guest } = this.#options;
    const onGone = () => this.cut("reset");
    guest.gone.addEventListener("abort", onGone);
    if (guest.gone.aborted) onGone();
    try {
      await this.#allow();
      this.#finish(await this.#carry(await this.#addresses()));
    } catch (thrown) {
      guest.refuse();
      this.#finish({ reason: this.#reasonOf(thrown) });
    } finally {
      guest.gone.removeEventListener("abort", onGone);
    }
  }

  cut(reason: FlowReason): void {
    this.#cut.abort(reason);
  }

  /** Cuts the flow if the changed policy no longer allows it. */
  reconsider(): void {
    this.#asking?.abort();
    // Without a verdict it is still to be decided.
    if (this.#verdict === undefined) return;
    const verdict = this.#decide();
    const isAllowed = verdict.action === "allow" || (verdict.action === "ask" && this.#isApproved);
    const { address } = this.#record;
    if (!isAllowed || (address !== null && !this.#admits(address, verdict))) this.cut("policy_changed");
    else this.#verdict = verdict;
  }

  async #allow(): Promise<void> {
    const { guest, parts } = this.#options;
    if (guest.name === null ? isIP(guest.address) === 0 : this.#name === null) throw new FlowEnd("invalid_name");
    if (this.#name === null && !parts.reachable.isReachable(guest.address, guest.port))
      throw new FlowEnd("special_address");
    for (;;) {
      const verdict = this.#decide();
      this.#record = { ...this.#record, rule: verdict.rule };
      if (verdict.action === "deny") throw new FlowEnd(verdict.rule === "default" ? "default" : "rule");
      if (verdict.action === "ask" && !(await this.#ask())) continue;
      this.#verdict = verdict;
      return;
    }
  }

  /** False if the policy has changed and must decide again. */
  async #ask(): Promise<boolean> {
    const { guest, owner, parts } = this.#options;
    const asking = new AbortController();
    const signal = AbortSignal.any([asking.signal, this.#cut.signal]);
    const aborted = new Promise<"aborted">((resolve) => signal.addEventListener("abort", () => resolve("aborted")));
    const { port, pid, program } = guest;
    const host = { name: this.#name, address: this.#name === null ? guest.address : null };
    this.#asking = asking;
    try {
      this.#throwIfCut();
      const answer = await Promise.race([
        parts.approvals.decide({ ...owner, ...host, port, pid, program }, signal),
        aborted,
      ]);
      this.#throwIfCut();
      if (asking.signal.aborted) return false;
      if (answer !== "allow") throw new FlowEnd("not_approved");
      this.#isApproved = true;
      return true;
    } finally {
      this.#asking = undefined;
    }
  }

  /** The checked addresses of the flow. */
  async #addresses(): Promise<readonly string[]> {
    const { guest, parts } = this.#options;
    if (this.#name === null) return [guest.address];
    const resolving = parts.resolver.resolve(this.#name);
    // A flow that is cut must not wait for slow servers.
    const resolution = resolving instanceof Promise ? await Promise.race([resolving, this.#untilCut()]) : resolving;
    if (resolution.kind === "failed") throw new FlowEnd("resolution_failed");
    if (resolution.kind !== "addresses") throw new FlowEnd("name_not_found");
    const reachable = resolution.addresses.filter((address) => parts.reachable.isReachable(address, guest.port));
    if (reachable.length === 0) throw new FlowEnd("special_address");
    const verdict = this.#verdict as Verdict;
    const admitted = reachable.filter((address) => this.#admits(address, verdict));
    if (admitted.length === 0) throw new FlowEnd("rule");
    return admitted;
  }

  #carry(addresses: readonly string[]): Promise<FlowOutcome> {
    const { guest, owner, parts, meter } = this.#options;
    const { clock, interceptor } = parts;
    return carryFlow({
      guest,
      flow: { ...owner, name: this.#name, address: guest.address, port: guest.port },
      dial: (signal = this.#cut.signal) => this.#dial(addresses, signal),
      interceptor,
      clock,
      isOwnHost: (host) => this.#isOwnHost(host),
      countSent: (bytes) => {
        this.#record.sentBytes += bytes;
        return meter.count(bytes);
      },
      countReceived: (bytes) => {
        this.#record.receivedBytes += bytes;
        return meter.count(bytes);
      },
      signal: this.#cut.signal,
    });
  }

  async #dial(addresses: readonly string[], signal: AbortSignal): Promise<Socket> {
    const { guest, parts, records } = this.#options;
    const socket = await dial({ addresses, port: guest.port, clock: parts.clock, signal });
    if (this.#isOpened) return socket;
    this.#isOpened = true;
    this.#record = { ...this.#record, decision: "allowed", address: socket.remoteAddress ?? null };
    records.opened({ ...this.#record });
    return socket;
  }

  #decide(): Verdict {
    const { guest, policy } = this.#options;
    return this.#name === null
      ? policy().decideAddress(guest.address, guest.port)
      : policy().decideName(this.#name, guest.port);
  }

  #admits(address: string, verdict: Verdict): boolean {
    return this.#name === null || this.#options.policy().admits(address, this.#options.guest.port, verdict);
  }

  /** A connection to an address may state any name that no rule denies, or none. */
  #isOwnHost(host: string | null): boolean {
    const { guest, policy } = this.#options;
    if (this.#name !== null) return host === this.#name;
    if (host === null || isIP(host) !== 0) return true;
    const { action, rule } = policy().decideName(host, guest.port);
    return action !== "deny" || rule === "default";
  }

  #untilCut(): Promise<never> {
    return new Promise((_resolve, reject) => {
      this.#cut.signal.addEventListener("abort", () => reject(new FlowEnd(this.#cut.signal.reason as FlowReason)));
      if (this.#cut.signal.aborted) reject(new FlowEnd(this.#cut.signal.reason as FlowReason));
    });
  }

  #throwIfCut(): void {
    if (this.#cut.signal.aborted) throw new FlowEnd(this.#cut.signal.reason as FlowReason);
  }

  #reasonOf(thrown: unknown): FlowReason {
    if (this.#cut.signal.aborted) return this.#cut.signal.reason as FlowReason;
    return thrown instanceof FlowEnd || thrown instanceof DialError ? thrown.reason : "connect_failed";
  }

  #finish({ reason, requests }: FlowOutcome): void {
    const { guest, records, parts } = this.#options;
    const { clock } = parts;
    const durationMs = clock.monotonicMs() - this.#startedAtMs;
    const made = requests === undefined ? {} : { requests: [...requests] };
    const ended = { ...this.#record, ...made, reason, durationMs, endedAt: clock.now().toISOString() };
    const isMismatch = reason === "tls_name_mismatch" || reason === "http_host_mismatch";
    if (this.#isOpened) {
      records.closed({ ...ended, decision: isMismatch ? "denied" : "allowed" });
      return;
    }
    const decision = innocent.includes(reason) && this.#verdict !== undefined ? "allowed" : "denied";
    const rule = reason === "special_address" ? null : ended.rule;
    const target = { allow: this.#name ?? guest.address, ports: [guest.port] };
    records.settled({ ...ended, decision, rule, suggestion: allowable.includes(reason) ? ruleText(target) : null });
  }
}
