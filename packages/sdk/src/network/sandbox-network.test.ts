import type { FlowRecord } from "@sandpiper/protocol";
import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { Client } from "../client.ts";
import { createMemoryServer } from "../testing/create-memory-server.ts";
import { memoryFlow } from "../testing/flow-record.ts";
import { ManualTiming } from "../testing/manual-timing.ts";

async function setUp(fetch?: typeof globalThis.fetch) {
  const server = createMemoryServer();
  const timing = new ManualTiming();
  const options = { ...server.clientOptions, timing };
  const sandbox = await new Client(options).sandboxes.create();
  const watched = fetch === undefined ? sandbox : await connected(sandbox.id, { ...options, fetch }, server);
  const add = (fields: Partial<FlowRecord> = {}) => {
    const flow = memoryFlow(sandbox.id, fields);
    server.network(sandbox.id).flows.push(flow);
    return flow;
  };
  return { server, timing, sandbox: watched, add, ...server.network(sandbox.id) };
}

/** Only the log is fetched from elsewhere. */
async function connected(
  id: string,
  options: ConstructorParameters<typeof Client>[0],
  server: { clientOptions: { fetch: typeof fetch } },
) {
  const elsewhere = options?.fetch as typeof fetch;
  const both: typeof fetch = (input, init) =>
    String(input).includes("/network/") ? elsewhere(input, init) : server.clientOptions.fetch(input, init);
  return await new Client({ ...options, fetch: both }).sandboxes.connect(id);
}

describe("the network log of a sandbox", () => {
  it("yields all records, page by page, and filters them", async () => {
    const { sandbox, add } = await setUp();
    const flows = Array.from({ length: 2500 }, (_, n) => add({ name: `${n}.example.com` }));
    expect(await Array.fromAsync(sandbox.network.log())).toEqual(flows);
    const denied = add({ decision: "denied" });
    expect(await Array.fromAsync(sandbox.network.log({ denied: true, since: new Date(0) }))).toEqual([denied]);
    expect(await Array.fromAsync(sandbox.network.log({ since: "2999-01-01T00:00:00.000Z" }))).toEqual([]);
    expect(await sandbox.network.logPage({ limit: 1 })).toEqual({ items: [denied], cursor: 2501, dropped: 0 });
    expect(await sandbox.network.logPage({ after: 2500 })).toMatchObject({ items: [denied] });
  });

  it("follows until the sandbox is gone", async () => {
    const { sandbox, add } = await setUp();
    const flow = add();
    expect(await Array.fromAsync(sandbox.network.log({ follow: true }))).toEqual([flow]);
  });

  it("continues after the last record when the connection is cut or the sandbox moves", async () => {
    const id = "6f6dbd8c-6c9f-4a53-9f10-0a6c0d3c9d11";
    const [one, two, three] = ["one", "two", "three"].map((name) => memoryFlow(id, { name }));
    const asked: string[] = [];
    const event = (cursor: number, flow: unknown) => `id: ${cursor}\nevent: ended\ndata: ${JSON.stringify(flow)}\n\n`;
    const answers: (() => Response)[] = [
      () => Response.json({ items: [], cursor: 7, dropped: 0 }),
      () => new Response(`:\n\n${event(8, one)}`),
      () => new Response(cut(event(9, two))),
      () => new Response(`${event(10, three)}event: end\ndata: {}\n\n`),
    ];
    const { sandbox, timing } = await setUp(async (input) => {
      asked.push(new URL(String(input)).search);
      return (answers.shift() as () => Response)();
    });
    const read = Array.fromAsync(sandbox.network.log({ follow: true, denied: true }));
    read.catch(() => {});
    for (let turn = 0; turn < 10; turn += 1) await timing.advance(1000);
    expect(await read).toEqual([one, two, three]);
    expect(asked).toEqual([
      "?denied=true&after=0&limit=1000",
      "?denied=true&after=7",
      "?denied=true&after=8",
      "?denied=true&after=9",
    ]);
  });

  it("ends with the reader's signal", async () => {
    const stop = new AbortController();
    const answers = [
      () => Response.json({ items: [], cursor: 0, dropped: 0 }),
      () => new Response(new ReadableStream({ start: (controller) => abortSoon(stop, controller) })),
    ];
    const { sandbox } = await setUp(async () => (answers.shift() as () => Response)());
    const read = Array.fromAsync(sandbox.network.log({ follow: true, signal: stop.signal }));
    expect(await rejection(read)).toMatchObject({ code: "canceled" });
  });

  it("becomes a suggestion", async () => {
    const { sandbox, add } = await setUp();
    expect(await sandbox.network.suggest()).toMatchObject({ rules: [], text: null });
    add({ name: "example.com", port: 8443 });
    expect(await sandbox.network.suggest({ since: new Date(0) })).toMatchObject({
      rules: [{ allow: "example.com", ports: [8443] }],
      text: "allow=example.com:8443",
    });
  });
});

/** A body that breaks after its text. */
function cut(text: string): ReadableStream<Uint8Array> {
  const pieces = [new TextEncoder().encode(text)];
  return new ReadableStream({
    pull(controller) {
      const piece = pieces.shift();
      if (piece === undefined) controller.error(new TypeError("terminated"));
      else controller.enqueue(piece);
    },
  });
}

/** Like a fetch whose signal aborts while its body is read. */
function abortSoon(stop: AbortController, controller: ReadableStreamDefaultController): void {
  stop.signal.addEventListener("abort", () => controller.error(stop.signal.reason));
  setImmediate(() => stop.abort());
}
