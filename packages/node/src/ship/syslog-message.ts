import { hostname } from "node:os";
import { isWarning, lineOf, type ShippedRecord } from "./shipped-record.ts";

/** "Log audit" and "system daemons" in RFC 5424. */
const facilities = { audit: 13, event: 3, network: 13 } as const;
const WARNING = 4;
const INFORMATIONAL = 6;

/** An RFC 5424 message without structured data. Its text is the record as JSON. */
export function syslogMessage(record: ShippedRecord): string {
  const priority = facilities[record.type] * 8 + (isWarning(record) ? WARNING : INFORMATIONAL);
  return `<${priority}>1 ${record.at} ${printable(hostname())} sandpiper ${process.pid} ${record.type} - ${lineOf(record)}`;
}

function printable(text: string): string {
  return text.replaceAll(/[^\x21-\x7e]/g, "").slice(0, 255) || "-";
}
