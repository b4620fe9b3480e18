import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer as createHttpServer, type IncomingHttpHeaders } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { FileReceiver } from "./file-receiver.ts";
import { OtlpReceiver } from "./otlp-receiver.ts";
import type { Receiver } from "./receiver.ts";
import type { ShippedRecord } from "./shipped-record.ts";
import { createSyslogReceiver } from "./syslog-receiver.ts";

const event = (id: number, details: object = { state: "ready" }): ShippedRecord => ({
  type: "event",
  node: "n",
  tenant: "one",
  id,
  at: "2026-01-01T00:00:00.000Z",
  kind: "sandbox.ready",
  sandboxId: null,
  details: details as never,
});
const refusal: ShippedRecord = {
  type: "audit",
  node: "n",
  id: 1,
  at: "2026-01-01T00:00:00.000Z",
  actor: null,
  tenant: null,
  operation: "startProcess",
  sandboxId: null,
  status: 401,
  requestId: "r",
  prev: "",
  mac: "m",
};
const signal = new AbortController().signal;

function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "sandpiper-ship-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

function opened<Opened extends Receiver>(receiver: Opened): Opened {
  onTestFinished(() => receiver[Symbol.asyncDispose]());
  return receiver;
}

describe("the file receiver", () => {
  it("rotates by size, keeps a number of files, and writes lines that only the owner can read", async () => {
    const directory = scratch();
    const path = join(directory, "audit.jsonl");
    const receiver = opened(new FileReceiver({ path, maxBytes: 500, maxFiles: 3 }));
    for (let id = 1; id <= 20; id += 1) await receiver.send([event(id), event(id + 100)]);
    expect(readdirSync(directory).toSorted()).toEqual(["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]);
    const files = [`${path}.2`, `${path}.1`, path].map((file) => readFileSync(file, "utf8"));
    for (const text of files) expect(text.length).toBeLessThanOrEqual(500);
    const ids = files.flatMap((text) =>
      text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).id),
    );
    expect(ids.slice(-2)).toEqual([20, 120]);
    expect(ids.length).toBeGreaterThan(3);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("continues a file after a restart, without the part of a line that a killed node left", async () => {
    const path = join(scratch(), "audit.jsonl");
    const first = new FileReceiver({ path, maxBytes: 10_000, maxFiles: 2 });
    await first.send([event(1)]);
    await first[Symbol.asyncDispose]();
    appendFileSync(path, '{"type":"aud');
    await opened(new FileReceiver({ path, maxBytes: 10_000, maxFiles: 2 })).send([event(2)]);
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).id)).toEqual([1, 2]);
  });
});

/** Collects what a server receives. */
async function collect(server: Server, where: object): Promise<() => string> {
  let text = "";
  server.on("connection", (socket) => socket.on("data", (bytes) => (text += bytes.toString("latin1"))));
  server.listen(where);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return () => text;
}

const HEADER = /^<108>1 2026-01-01T00:00:00\.000Z \S+ sandpiper \d+ audit - /;

describe("the syslog receiver", () => {
  it("sends RFC 5424 messages with their length over TCP, and connects again", async () => {
    const server = createServer();
    const received = await collect(server, { port: 0, host: "127.0.0.1" });
    const { port } = server.address() as AddressInfo;
    const connected = once(server, "connection");
    const receiver = opened(createSyslogReceiver(`tcp://127.0.0.1:${port}`));
    await receiver.send([refusal, event(2, { name: "ä\n" })], signal);
    await expect.poll(received).toContain("sandbox.ready");
    const [, length = "", rest = ""] = /^(\d+) (.*)$/s.exec(received()) ?? [];
    expect(rest.slice(0, Number(length))).toMatch(HEADER);
    expect(JSON.parse(rest.slice(0, Number(length)).replace(HEADER, ""))).toEqual(refusal);
    expect(rest.slice(Number(length))).toMatch(/^\d+ <30>1 .*"name":"\\u00e4\\n"/);
    const [socket] = await connected;
    socket.destroy();
    await expect
      .poll(async () => {
        await receiver.send([event(3)], signal).catch(() => {});
        return received();
      })
      .toContain('"id":3');
  });

  it("sends datagrams over UDP", async () => {
    const socket = createSocket("udp4").bind(0, "127.0.0.1");
    await once(socket, "listening");
    onTestFinished(() => void socket.close());
    const arrived = once(socket, "message");
    await opened(createSyslogReceiver(`udp://127.0.0.1:${socket.address().port}`)).send([refusal], signal);
    expect(String((await arrived)[0])).toMatch(HEADER);
  });

  it("sends to a stream socket of this machine", async () => {
    const path = join(scratch(), "log");
    const received = await collect(createServer(), { path });
    await opened(createSyslogReceiver(`unix://${path}`)).send([refusal], signal);
    await expect.poll(received).toMatch(/^\d+ <108>1 /);
  });

  it("sends to a datagram socket of this machine, as /dev/log is", async () => {
    const path = join(scratch(), "log");
    const script = `import socket,sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(sys.argv[1]); print("bound", flush=True)
for _ in range(2): print(s.recv(65536).decode(), flush=True)`;
    const child = spawn("python3", ["-c", script, path], { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => void child.kill());
    let text = "";
    child.stdout.on("data", (bytes) => (text += bytes));
    await expect.poll(() => text).toContain("bound");
    const receiver = opened(createSyslogReceiver(`unix://${path}`));
    await receiver.send([refusal], signal);
    await receiver.send([event(2)], signal);
    await expect.poll(() => text).toContain('"id":2');
    expect(text).toMatch(/<108>1 \S+ \S+ sandpiper .*\{"type":"audit"/);
    expect(text).toMatch(/<30>1 \S+ \S+ sandpiper .*\{"type":"event"/);
  });

  it("fails while no receiver listens", async () => {
    const receiver = opened(createSyslogReceiver(`unix://${join(scratch(), "none")}`));
    await expect(receiver.send([refusal], signal)).rejects.toThrow("ENOENT");
  });
});

describe("the OpenTelemetry receiver", () => {
  /** A collector that answers with these statuses and bodies. */
  async function collector(...answers: [status: number, body: object][]) {
    const requests: { url: string | undefined; headers: IncomingHttpHeaders; body: never }[] = [];
    const server = createHttpServer(async (request, response) => {
      const body = JSON.parse(Buffer.concat(await request.toArray()).toString()) as never;
      requests.push({ url: request.url, headers: request.headers, body });
      const [status, answer] = answers.shift() ?? [200, {}];
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const headers = { authorization: "Bearer x" };
    return { requests, receiver: new OtlpReceiver({ url, headers, node: "n", version: "1.2.3" }) };
  }

  it("sends log records in OTLP's JSON", async () => {
    const { requests, receiver } = await collector();
    expect(await receiver.send([refusal, event(7)], signal)).toBe(0);
    expect(requests).toMatchObject([
      {
        url: "/v1/logs",
        headers: { "content-type": "application/json", authorization: "Bearer x" },
        body: {
          resourceLogs: [
            {
              resource: {
                attributes: expect.arrayContaining([{ key: "service.name", value: { stringValue: "sandpiper" } }]),
              },
              scopeLogs: [
                {
                  scope: { name: "sandpiper", version: "1.2.3" },
                  logRecords: [
                    {
                      timeUnixNano: "1767225600000000000",
                      severityNumber: 13,
                      eventName: "sandpiper.audit",
                      body: { stringValue: "startProcess" },
                      attributes: expect.arrayContaining([
                        { key: "sandpiper.status", value: { intValue: "401" } },
                        { key: "sandpiper.mac", value: { stringValue: "m" } },
                      ]),
                    },
                    {
                      severityNumber: 9,
                      body: { stringValue: "sandbox.ready" },
                      attributes: expect.arrayContaining([
                        { key: "sandpiper.details", value: { stringValue: '{"state":"ready"}' } },
                      ]),
                    },
                  ],
                },
              ],
            },
          ],
        },
      },
    ]);
  });

  it("retries only what OTLP calls retryable, and counts what the collector rejected", async () => {
    const { receiver } = await collector([503, {}], [400, {}], [200, { partialSuccess: { rejectedLogRecords: "1" } }]);
    await expect(receiver.send([refusal, refusal], signal)).rejects.toThrow("status 503");
    expect(await receiver.send([refusal, refusal], signal)).toBe(2);
    expect(await receiver.send([refusal, refusal], signal)).toBe(1);
  });
});
