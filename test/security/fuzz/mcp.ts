import fc from "fast-check";
import type { Bed } from "./bed.ts";
import { damaged, damages, jsonText, mutated, RawJson } from "./malformed-json.ts";
import { type RawAnswer, sendRaw } from "./raw-http.ts";
import type { FuzzTarget } from "./run-fuzz.ts";
import { type JsonSchema, placeholders, validValues } from "./valid-values.ts";

export interface McpInput {
  readonly method: string;
  readonly headers: readonly string[];
  readonly body: Buffer;
}

const REVISION = "2025-06-18";
const opening = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: "fuzz", version: "1" } },
};
const ACCEPT = "Accept: application/json, text/event-stream";
const TYPE = "Content-Type: application/json";

const otherMessages = fc.constantFrom<object>(
  { jsonrpc: "2.0", id: 2, method: "ping" },
  { jsonrpc: "2.0", id: 2, method: "tools/list" },
  { jsonrpc: "2.0", id: 2, method: "resources/list" },
  { jsonrpc: "2.0", id: 2, method: "resources/templates/list" },
  { jsonrpc: "2.0", id: 2, method: "resources/read", params: { uri: "sandbox://@sandbox@/tmp/a" } },
  {
    jsonrpc: "2.0",
    id: 2,
    method: "completion/complete",
    params: { ref: { type: "ref/prompt", name: "a" }, argument: {} },
  },
  { jsonrpc: "2.0", id: 2, method: "logging/setLevel", params: { level: "debug" } },
  { jsonrpc: "2.0", method: "notifications/initialized" },
  { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2, reason: "a" } },
  { jsonrpc: "2.0", id: 7, result: {} },
  { jsonrpc: "2.0", id: 7, error: { code: -32000, message: "a" } },
  [
    { jsonrpc: "2.0", id: 2, method: "ping" },
    { jsonrpc: "2.0", id: 2, method: "ping" },
  ],
  [],
  opening,
);

const ids = fc.constantFrom<unknown>(
  2,
  "a",
  null,
  -1,
  1.5,
  {},
  [],
  true,
  new RawJson("1e400"),
  "x".repeat(5000),
  2 ** 53,
);

function inputsOf(tools: readonly { name: string; inputSchema: JsonSchema }[]): fc.Arbitrary<McpInput> {
  const call = (name: string, args: unknown) => ({
    jsonrpc: "2.0",
    id: 2,
    method: "tools/call",
    params: { name, arguments: args },
  });
  const calls = tools.map(({ name, inputSchema }) => {
    const args = validValues(inputSchema);
    return fc
      .oneof({ weight: 1, arbitrary: args }, { weight: 3, arbitrary: mutated(args) })
      .map((given) => call(name, given));
  });
  const valid = fc.oneof({ weight: 3, arbitrary: fc.oneof(...calls) }, { weight: 1, arbitrary: otherMessages });
  const withId = fc.tuple(valid, ids).map(([message, id]) => ({ ...(message as object), id }));
  const messages = fc.oneof(
    { weight: 1, arbitrary: valid },
    { weight: 5, arbitrary: mutated(valid) },
    { weight: 1, arbitrary: withId },
  );
  const rarely = <T>(normal: T, others: readonly T[]) =>
    fc.oneof({ weight: 20, arbitrary: fc.constant(normal) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
  return fc
    .record({
      method: rarely("POST", ["GET", "DELETE", "PUT", "HEAD", "OPTIONS"]),
      accept: rarely(ACCEPT, [
        "",
        "Accept: application/json",
        "Accept: text/event-stream",
        "Accept: \u00ff",
        "Accept: */*",
      ]),
      type: rarely(TYPE, ["", "Content-Type: text/plain", "Content-Type: application/json; charset=x"]),
      session: rarely(`Mcp-Session-Id: ${placeholders.session}`, [
        "",
        "Mcp-Session-Id: wrong",
        "Mcp-Session-Id: ",
        `Mcp-Session-Id: ${"s".repeat(5000)}`,
        "Mcp-Session-Id: \u00ff",
      ]),
      revision: rarely(`Mcp-Protocol-Version: ${REVISION}`, [
        "",
        "Mcp-Protocol-Version: 1999-01-01",
        "Mcp-Protocol-Version: \u00ff",
      ]),
      authorization: rarely("Authorization: Bearer @key@", ["", "Authorization: Bearer wrong"]),
      more: rarely("", [
        "Last-Event-Id: wrong",
        `Last-Event-Id: ${"e".repeat(5000)}`,
        "Origin: https://evil.example.com",
        "Host: evil.example.com",
      ]),
      text: messages.map(jsonText),
      damage: damages,
    })
    .map(({ method, text, damage, ...headers }) => ({
      method,
      headers: Object.values(headers).filter((line) => line !== ""),
      body: damaged(text, damage),
    }));
}

/** `/mcp`, in one session that is opened again when an input has closed it. */
export async function mcpTarget(bed: Bed): Promise<FuzzTarget<McpInput>> {
  const { node } = bed;
  const fill = (text: string) => bed.fill(text).replaceAll("@key@", node.apiKey);
  const post = async (message: object) =>
    await request(
      node.port,
      { method: "POST", headers: ordinaryHeaders(bed), body: Buffer.from(JSON.stringify(message)) },
      fill,
    );
  const open = async () => {
    bed.session = "";
    bed.session = (await post(opening)).headers.get("mcp-session-id") ?? "";
    await post({ jsonrpc: "2.0", method: "notifications/initialized" });
  };
  const close = async (session: string) => {
    const headers = ["Authorization: Bearer @key@", `Mcp-Session-Id: ${session}`];
    await request(node.port, { method: "DELETE", headers, body: Buffer.alloc(0) }, fill);
  };
  const listTools = async () => {
    const [answer] = messagesOf(await post({ jsonrpc: "2.0", id: 1, method: "tools/list" })) as [
      { result?: { tools?: [] } },
    ];
    return answer?.result?.tools ?? [];
  };
  await bed.ready();
  await open();
  return {
    inputs: inputsOf(await listTools()),
    async send(input) {
      await bed.ready();
      const answer = await request(node.port, input, fill);
      const given = answer.headers.get("mcp-session-id");
      checkAnswer(answer, input.method);
      if (given !== undefined && given !== bed.session) await close(given);
      if (input.method === "DELETE" && answer.status < 300) await open();
      if (answer.status < 300) bed.suspect();
      node.requireSound();
      return outcomeOf(answer);
    },
    holdings: () => node.holdings(),
    async useOrdinarily() {
      await close(bed.session);
      await open();
      if ((await listTools()).length === 0) throw new Error("an ordinary session has no tools");
      await bed.useOrdinarily();
      bed.suspect();
      await bed.ready();
    },
  };
}

function ordinaryHeaders(bed: Bed): string[] {
  const session = bed.session === "" ? [] : [`Mcp-Session-Id: ${bed.session}`];
  return [ACCEPT, TYPE, "Authorization: Bearer @key@", ...session];
}

async function request(
  port: number,
  { method, headers, body }: McpInput,
  fill: (text: string) => string,
): Promise<RawAnswer> {
  const filled = Buffer.from(fill(body.toString("latin1")), "latin1");
  const host = headers.some((line) => line.startsWith("Host")) ? [] : ["Host: localhost"];
  const head = [`${method} /mcp HTTP/1.1`, ...host, ...headers.map(fill), `Content-Length: ${filled.length}`];
  const bytes = Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`, "latin1"), filled]);
  const answer = await sendRaw(port, bytes, { method, waitsForEvents: method === "POST" });
  if (answer === "closed") throw new Error("closed without an answer");
  return answer;
}

/** The JSON-RPC messages of an answer: one, or the events of a stream. */
function messagesOf({ headers, body }: RawAnswer): readonly unknown[] {
  const text = body.toString();
  if (headers.get("content-type")?.startsWith("application/json")) return [JSON.parse(text)];
  const lines = text.split("\n").filter((line) => /^data: ./.test(line));
  return lines.map((line) => JSON.parse(line.slice("data: ".length)));
}

function checkAnswer(answer: RawAnswer, method: string): void {
  const { status } = answer;
  const problem = (what: string) => new Error(`${what}: ${status} ${answer.body.toString().slice(0, 2000)}`);
  if (status >= 500) throw problem("the node failed");
  if (method === "HEAD" || status === 202 || status === 204) return;
  for (const message of messagesOf(answer)) {
    const { jsonrpc, error } = message as { jsonrpc?: unknown; error?: { code?: unknown; data?: { code?: unknown } } };
    // Paths and methods that are not of MCP have REST's error body.
    if (jsonrpc !== "2.0" && status !== 405) throw problem("not a JSON-RPC message");
    if (error?.code === -32603 || error?.data?.code === "internal") throw problem("an internal error");
  }
  const text = answer.body.toString();
  if (/internal_error|node_modules|\.ts:\d+/.test(text)) throw problem("the node failed");
  if (status >= 300 && messagesOf(answer).length === 0) throw problem("a refusal without a message");
}

function outcomeOf(answer: RawAnswer): string {
  const [message] = answer.status === 200 && answer.body.length > 0 ? messagesOf(answer) : [];
  const { error, result } = (message ?? {}) as { error?: { code: number }; result?: { isError?: boolean } };
  if (error !== undefined) return `${answer.status} ${error.code}`;
  return result?.isError ? `${answer.status} isError` : String(answer.status);
}
