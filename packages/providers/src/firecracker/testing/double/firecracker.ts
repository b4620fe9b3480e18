/**
 * A double of Firecracker for hosts without KVM. It implements the published API with its states and refusals; its
 * guest is the real agent in a gVisor sandbox.
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Fault } from "./faults.ts";
import { JailedFiles } from "./jailed-files.ts";
import { DoubleMachine, VERSION } from "./machine.ts";
import { parseBody, requestKind } from "./request-bodies.ts";

/** More connections get status 503. */
const MAX_CONNECTIONS = 10;

const text = { type: "string" } as const;
const { values } = parseArgs({
  options: {
    id: { ...text, default: "anonymous-instance" },
    "api-sock": { ...text, default: "/run/firecracker.socket" },
    level: { ...text, default: "Info" },
    "log-path": text,
    "start-time-us": text,
    "start-time-cpu-us": text,
  },
});

log("Info", `Running Firecracker v${VERSION}`);
const machine = new DoubleMachine(guestDirectory());
/** Serves one request at a time. */
let last: Promise<unknown> = Promise.resolve();

const server = createServer((request, response) => {
  const answered = last.then(() => answer(request, response));
  last = answered.catch(() => {});
});
let connections = 0;
server.prependListener("connection", (socket: Socket) => {
  if (++connections > MAX_CONNECTIONS) socket.end("HTTP/1.1 503 \r\nContent-Length: 0\r\n\r\n");
  socket.on("close", () => connections--);
});
// Idle connections stay open, as with the real Firecracker.
Object.assign(server, { headersTimeout: 0, requestTimeout: 0, keepAliveTimeout: 0 });
const path = values["api-sock"].replace(/^\//, "");
if (existsSync(path)) throw new Error(`the socket ${path} already exists`);
server.listen({ path });
process.on("SIGTERM", () => process.exit(0));

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = "";
  for await (const piece of request.setEncoding("utf8")) body += piece;
  try {
    const { method = "", url = "" } = request;
    const kind = requestKind(method, url);
    if (method === "GET") return reply(response, 200, describe(kind));
    await machine.handle(kind, url, parseBody(kind, body));
    reply(response, 204);
  } catch (error) {
    const fault = error instanceof Fault ? error : new Fault(String(error instanceof Error ? error.stack : error));
    reply(response, 400, { fault_message: fault.message });
    if (fault.isFatal) response.on("finish", () => process.exit(1));
  }
}

/** To the console until a log is set. The file is not opened for appending. */
function log(level: "Info" | "Warning", line: string): void {
  if (level === "Info" && values.level !== "Info") return;
  const path = values["log-path"];
  if (path === undefined) process.stdout.write(`[${values.id}:main] ${line}\n`);
  else writeFileSync(new JailedFiles().require(path, "write"), `[${values.id}:main] ${line}\n`, { flag: "r+" });
}

function describe(kind: string): object {
  if (kind === "GET /version") return { firecracker_version: VERSION };
  if (kind === "GET /machine-config") return machine.configuration;
  return { id: values.id, state: machine.state, vmm_version: VERSION, app_name: "Firecracker" };
}

function reply(response: ServerResponse, status: number, body?: object): void {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}

/** Uses the provider's short path into the jail, because runsc has sockets there. */
function guestDirectory(): string {
  const short = resolve("../../../../machine");
  const directory = join(existsSync(short) ? short : process.cwd(), "g");
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { mode: 0o700 });
  return directory;
}
