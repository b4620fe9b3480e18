import type { EventBody, FlowRecord } from "@sandpiper/protocol";
import type { ChainedEntry } from "../audit/audit-chain.ts";

/** Larger details do not fit into a datagram. */
const MAX_DETAILS_CHARACTERS = 16 * 1024;

/** An audit entry, an event, or a connection or query of a sandbox that has ended, as receivers get it. */
export type ShippedRecord =
  | ({ readonly type: "audit"; readonly node: string } & ChainedEntry)
  | ({ readonly type: "event"; readonly node: string; readonly tenant: string | null } & EventBody)
  | ({ readonly type: "network"; readonly node: string; readonly tenant: string } & FlowRecord);

export function shippedEvent(
  event: EventBody,
  { node, tenant }: { node: string; tenant: string | null },
): ShippedRecord {
  const isLong = JSON.stringify(event.details).length > MAX_DETAILS_CHARACTERS;
  return { type: "event", node, tenant, ...event, details: isLong ? { isTruncated: true } : event.details };
}

/** Whether an operator should look at it. */
export function isWarning(record: ShippedRecord): boolean {
  if (record.type === "audit") return record.status >= 400;
  return record.type === "network" ? record.decision === "denied" : record.kind === "sandbox.failed";
}

/** One line of ASCII: other characters are escaped. */
export function lineOf(record: ShippedRecord): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(record).replaceAll(/[^\x20-\x7e]/g, escaped);
}
