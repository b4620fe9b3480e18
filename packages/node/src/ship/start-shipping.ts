import type { Clock, SandboxError } from "@sandpiper/core";
import type { AuditTrail } from "../audit/audit-trail.ts";
import type { NodeConfig } from "../config/node-config.ts";
import type { FlowEntry } from "../flows/flow-entry.ts";
import type { FlowLog } from "../flows/flow-log.ts";
import type { SqliteEventLog } from "../records/sqlite-event-log.ts";
import { FileReceiver } from "./file-receiver.ts";
import { OtlpReceiver } from "./otlp-receiver.ts";
import type { Receiver } from "./receiver.ts";
import { type ShipOutcome, ShipQueue } from "./ship-queue.ts";
import { type ShippedRecord, shippedEvent } from "./shipped-record.ts";
import { createSyslogReceiver } from "./syslog-receiver.ts";

export interface ShippingOptions {
  readonly audit: Pick<AuditTrail, "subscribe">;
  readonly events: Pick<SqliteEventLog, "subscribe">;
  readonly flows: Pick<FlowLog, "subscribe">;
  readonly node: string;
  readonly version: string;
  readonly clock: Clock;
  readonly count: (receiver: string, outcome: ShipOutcome, records: number) => void;
  readonly onTrouble: (receiver: string, trouble: { readonly error?: SandboxError; readonly dropped?: number }) => void;
}

/** Ships audit entries, events and network records as they are recorded to every configured receiver. */
export function startShipping(config: Pick<NodeConfig, "ship" | "stopGraceMs">, options: ShippingOptions) {
  const { audit, events, flows, node, clock, count, onTrouble } = options;
  const queues = receiversOf(config, options).map((receiver) => new ShipQueue({ receiver, clock, count, onTrouble }));
  const subscriptions = new DisposableStack();
  if (queues.length > 0) {
    const ship = (records: readonly ShippedRecord[]) => queues.forEach((queue) => void queue.add(records));
    subscriptions.use(audit.subscribe((entries) => ship(entries.map((entry) => ({ type: "audit", node, ...entry })))));
    const ended = ({ record: { endedAt } }: FlowEntry) => endedAt !== null;
    const shipped = ({ record, tenant }: FlowEntry): ShippedRecord => ({ type: "network", node, tenant, ...record });
    subscriptions.use(
      flows.subscribe((entries) => queues.forEach((queue) => void queue.addLast(entries.filter(ended).map(shipped)))),
    );
    subscriptions.use(events.subscribe((event, tenant) => ship([shippedEvent(event, { node, tenant })])));
  }
  return {
    /** Sends what is queued. Call after the last entry was written. */
    async [Symbol.asyncDispose](): Promise<void> {
      subscriptions.dispose();
      await Promise.all(queues.map((queue) => queue.close(config.stopGraceMs)));
    },
  };
}

function receiversOf({ ship }: Pick<NodeConfig, "ship">, { node, version }: ShippingOptions): readonly Receiver[] {
  const { file, fileMaxMib, fileCount, syslog, otlp, otlpHeaders } = ship;
  const headers = Object.fromEntries(otlpHeaders.map((text) => text.split(/=(.*)/s).slice(0, 2)));
  return [
    ...(file === null ? [] : [new FileReceiver({ path: file, maxBytes: fileMaxMib * 2 ** 20, maxFiles: fileCount })]),
    ...(syslog === null ? [] : [createSyslogReceiver(syslog)]),
    ...(otlp === null ? [] : [new OtlpReceiver({ url: otlp, headers, node, version })]),
  ];
}
