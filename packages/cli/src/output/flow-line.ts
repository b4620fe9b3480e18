import type { FlowRecord } from "@sandpiper/sdk";
import { plainText, shortBytes } from "./format.ts";
import type { Column } from "./table.ts";

export const flowColumns: readonly Column<FlowRecord>[] = [
  { title: "TIME", cell: ({ at }) => timeOf(at) },
  { title: "WHAT", cell: whatOf },
  { title: "HOST", cell: hostOf },
  { title: "PROGRAM", cell: ({ program }) => program ?? "-" },
  { title: "DECISION", cell: ({ decision }) => decision },
  { title: "WHY", cell: whyOf },
  { title: "SENT", align: "right", cell: (flow) => bytesOf(flow, flow.sentBytes) },
  { title: "RECEIVED", align: "right", cell: (flow) => bytesOf(flow, flow.receivedBytes) },
  { title: "MS", align: "right", cell: ({ kind, durationMs }) => (kind === "flow" ? durationText(durationMs) : "") },
  { title: "WOULD ALLOW IT", cell: ({ suggestion }) => suggestion ?? "" },
];

/** One line for people who follow the log. */
export function flowLine(flow: FlowRecord): string {
  const { at, kind, decision, program, suggestion, durationMs, endedAt, requests = [] } = flow;
  const words = [timeOf(at), decision.padEnd(7), whatOf(flow).padEnd(8), hostOf(flow)];
  if (program !== null) words.push(`by ${program}`);
  words.push(`(${whyOf(flow)})`);
  if (kind === "flow" && endedAt === null) words.push("open");
  else if (kind === "flow" && decision === "allowed") {
    const [sent, received] = [shortBytes(flow.sentBytes), shortBytes(flow.receivedBytes)];
    words.push(`sent ${sent}, received ${received} in ${durationText(durationMs)} ms`);
  }
  if (suggestion !== null) words.push(`would be allowed by ${suggestion}`);
  const more = requests.map(({ method, path, status }) => `  ${method} ${path} ${status ?? "-"}`);
  return [words.join("  "), ...more].map((line) => `${plainText(line)}\n`).join("");
}

/** In the reader's time zone. */
function timeOf(at: string): string {
  const time = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(":");
}

function whatOf({ kind, queryType }: FlowRecord): string {
  if (kind === "query") return queryType === null ? "dns" : `dns ${queryType}`;
  return kind === "flow" ? "tcp" : "udp";
}

function hostOf({ name, address, port, count }: FlowRecord): string {
  const host = name ?? (address?.includes(":") === true ? `[${address}]` : address) ?? "-";
  const times = count > 1 ? ` ×${count}` : "";
  return `${host}${port === null ? "" : `:${port}`}${times}`;
}

/** The rule that decided, or why none was asked. */
function whyOf({ rule, reason }: FlowRecord): string {
  const isRule = reason === null || reason === "rule" || reason === "default";
  return isRule ? (rule ?? reason ?? "-") : reason.replaceAll("_", " ");
}

function bytesOf({ kind, endedAt }: FlowRecord, bytes: number): string {
  return kind === "flow" && endedAt !== null ? shortBytes(bytes) : "";
}

function durationText(durationMs: number | null): string {
  return durationMs === null ? "-" : String(Math.round(durationMs));
}
