import { FakeClock, settle } from "@sandpiper/core/testing";
import { encodeFrame, MAX_ATTACHMENT_BYTES, MAX_LINE_BYTES } from "@sandpiper/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AgentClient } from "../../../packages/core/src/agent/agent-client.ts";
import { download } from "../../../packages/core/src/agent/download.ts";
import { uploadFile } from "../../../packages/core/src/agent/upload.ts";
import { ScriptedAgent } from "../../../packages/core/src/testing/scripted-agent.ts";
import { fuzz, fuzzTimeoutMs } from "./fuzz-in-process.ts";

/** Ids of open calls, of ended ones and of calls that were never made. */
const ids = fc.oneof(
  fc.integer({ min: 1, max: 8 }),
  fc.constantFrom<unknown>(0, -1, 99, 1.5, "1", null, [], {}, 2 ** 53),
);
const values = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    -1,
    0,
    2 ** 53,
    1e308,
    "",
    "x".repeat(5000),
    [],
    {},
    { pong: true },
    { size: 5 },
  ),
  fc.jsonValue({ maxDepth: 3 }),
);
const methods = fc.constantFrom("stream.data", "stream.credit", "stream.end", "cancel", "hello", "ping", "no.such");
const attachments = fc.option(fc.uint8Array({ maxLength: 400 }), { nil: undefined });

const notification = fc
  .tuple(
    methods,
    fc.record(
      { call: ids, bytes: values, offset: values, dropped: values, source: values },
      { requiredKeys: ["call"] },
    ),
    attachments,
  )
  .map(([method, params, bytes]) => encodeFrame({ jsonrpc: "2.0", method, params }, bytes));
const answer = fc
  .tuple(
    ids,
    fc.oneof(fc.record({ result: values }), fc.record({ error: values }), fc.record({ result: values, error: values })),
  )
  .map(([id, outcome]) => encodeFrame({ jsonrpc: "2.0", id, ...outcome }));
const message = fc
  .dictionary(fc.constantFrom("jsonrpc", "id", "method", "params", "result", "error"), values)
  .map((fields) => encodeFrame(fields));

const line = (text: string) => [Buffer.from(`${text}\n`)];
const huge = fc.constantFrom(
  line('{"jsonrpc":"2.0","bytes":1e15}'),
  line(`{"jsonrpc":"2.0","method":"stream.data","params":{"call":1},"bytes":${MAX_ATTACHMENT_BYTES}}`),
  line(`{"jsonrpc":"2.0","method":"stream.data","params":{"call":1},"bytes":${MAX_ATTACHMENT_BYTES + 1}}`),
  line(`{"jsonrpc":"2.0","id":1,"result":${"[".repeat(200_000)}${"]".repeat(200_000)}}`),
  line(`{"a":${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}}`),
  [Buffer.alloc(MAX_LINE_BYTES + 2, "x")],
  line('{"jsonrpc":"2.0","id":1,"result":{"__proto__":{"polluted":true}}}'),
);
/** Many frames of few bytes. */
const flood = fc
  .tuple(
    fc.constantFrom(
      "\n",
      "x\n",
      "{}\n",
      '{"jsonrpc":"2.0","id":1,"result":{}}\n',
      '{"jsonrpc":"2.0","method":"stream.data","params":{"call":4},"bytes":0}\n\n',
    ),
    fc.integer({ min: 50, max: 3000 }),
  )
  .map(([text, times]) => [Buffer.from(text.repeat(times))]);

/** Frames, of which some are cut, changed or out of order. */
const inputs = fc
  .tuple(
    fc.array(
      fc.oneof(
        { weight: 8, arbitrary: notification },
        { weight: 8, arbitrary: answer },
        { weight: 4, arbitrary: message },
        huge,
        flood,
      ),
      { minLength: 1, maxLength: 12 },
    ),
    fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }),
    fc.option(fc.tuple(fc.nat(), fc.nat(400)), { nil: undefined }),
    fc.integer({ min: 1, max: 70_000 }),
  )
  .map(([frames, changes, cut, pieceBytes]) => {
    const bytes = Buffer.concat(frames.flat());
    for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
    const [from = 0, length = 0] = cut ?? [];
    const at = from % bytes.length;
    const kept = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
    return { bytes: kept, pieceBytes: Math.max(pieceBytes, Math.ceil(kept.length / 200)) };
  });

const padding = Buffer.alloc(MAX_ATTACHMENT_BYTES + 2, " ");
padding[padding.length - 1] = 0x0a;

/** Calls of every kind wait while the input arrives. They have the ids 1 to 5. */
function openCalls(client: AgentClient): Promise<unknown>[] {
  const read = async (stream: AsyncIterable<unknown>) => {
    for await (const _ of stream);
  };
  return [
    client.call("read_file", { path: "x" }),
    client.call("process.wait", { process: "p" }),
    uploadFile(client, { path: "x" }, new Uint8Array(100_000)),
    read(download(client, "file.read", { path: "x" })),
    read(download(client, "process.output", { process: "p" }, { journalOffset: 0 })),
  ];
}

async function send({
  bytes,
  pieceBytes,
}: {
  readonly bytes: Uint8Array;
  readonly pieceBytes: number;
}): Promise<string> {
  const clock = new FakeClock();
  const agent = new ScriptedAgent();
  const client = await agent.client({ clock });
  const calls = openCalls(client).map((call) => call.catch(() => {}));
  for (let at = 0; at < bytes.length; at += pieceBytes) agent.raw(bytes.subarray(at, at + pieceBytes));
  await settle();
  // Ends attachments and lines that the input left open.
  for (let times = 0; times < 2; times++) agent.raw(padding);
  // Until the client has worked off what it received, at the rate of its budget.
  clock.run(20_000);
  const outcome = client.isClosed ? (await client.closed).reason : await client.ping().then(() => "answers");
  expect(["answers", "agent_malformed", "agent_window_exceeded"]).toContain(outcome);
  client.close();
  // No call waits for an agent that is gone.
  await Promise.all(calls);
  expect(client.openCalls).toBe(0);
  return outcome;
}

describe("malformed inputs from a guest", () => {
  it("leave the channel in use or closed with a reason, and no call without an end", {
    timeout: fuzzTimeoutMs,
  }, async () => {
    const outcomes = await fuzz({ name: "agent channel: to the node", inputs, shortInputs: 150, send });
    expect(Object.keys(outcomes)).toEqual(expect.arrayContaining(["answers", "agent_malformed"]));
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});
