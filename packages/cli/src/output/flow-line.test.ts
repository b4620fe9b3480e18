import type { FlowRecord } from "@sandpiper/sdk";
import { expect, it } from "vitest";
import { flowColumns, flowLine } from "./flow-line.ts";

const flow: FlowRecord = {
  id: "1",
  sandboxId: "6f6dbd8c-6c9f-4a53-9f10-0a6c0d3c9d11" as FlowRecord["sandboxId"],
  at: "2026-01-01T00:00:00.000Z",
  kind: "flow",
  name: "example.com",
  address: "203.0.113.1",
  port: 443,
  queryType: null,
  pid: 41,
  program: "curl",
  decision: "allowed",
  rule: "allow=example.com:443",
  suggestion: null,
  reason: null,
  sentBytes: 100,
  receivedBytes: 2048,
  durationMs: 12.4,
  endedAt: "2026-01-01T00:00:00.012Z",
  count: 1,
};
const lineOf = (fields: Partial<FlowRecord> = {}) =>
  flowLine({ ...flow, ...fields }).replace(/^\d\d:\d\d:\d\d {2}/, "");

it("shows an ended connection with its rule, bytes and duration", () => {
  expect(lineOf()).toBe(
    "allowed  tcp       example.com:443  by curl  (allow=example.com:443)  sent 100 B, received 2.00 KiB in 12 ms\n",
  );
  expect(lineOf({ endedAt: null, durationMs: null })).toMatch(/\(allow=example\.com:443\) {2}open\n$/);
});

it("shows a denial with the rule that would allow it", () => {
  const denied = { decision: "denied", reason: "default", rule: "default" } as const;
  expect(lineOf({ ...denied, kind: "query", queryType: "A", port: null, suggestion: "allow=example.com" })).toBe(
    "denied   dns A     example.com  by curl  (default)  would be allowed by allow=example.com\n",
  );
  expect(lineOf({ ...denied, reason: "special_address", program: null })).toBe(
    "denied   tcp       example.com:443  (special address)\n",
  );
});

it("shows requests below their connection, and never control characters of the sandbox", () => {
  const requests = [{ method: "GET", path: "/simple/\u001b[31m", status: 200 }];
  expect(lineOf({ requests, program: "cu\nrl" })).toMatch(/by cu\ufffdrl .*\n {2}GET \/simple\/\ufffd\[31m 200\n$/);
});

it("has a column for each part, with addresses in brackets and counts of merged records", () => {
  const cells = (fields: Partial<FlowRecord>) =>
    Object.fromEntries(flowColumns.map(({ title, cell }) => [title, cell({ ...flow, ...fields })]));
  expect(cells({ name: null, address: "2001:db8::1", count: 3 })).toMatchObject({ HOST: "[2001:db8::1]:443 ×3" });
  expect(cells({ kind: "datagram", decision: "denied", reason: "datagram", endedAt: flow.at })).toMatchObject({
    WHAT: "udp",
    WHY: "datagram",
    SENT: "",
    MS: "",
  });
});
