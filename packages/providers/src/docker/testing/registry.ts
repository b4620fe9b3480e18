import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { provideRegistry } from "../../../../../scripts/setup/servers.mjs";
import { freePort } from "./free-port.ts";

/** Of util-linux: runs a program that ends with whoever started it. */
const SETPRIV = "setpriv";
const LOOPBACK = "127.0.0.1";
const ATTEMPTS = 200;
const PAUSE_MS = 50;
/** What a registry that is not open to everybody wants. */
export const CREDENTIAL = { username: "test", password: "open sesame" };
const AUTHORIZATION = `Basic ${Buffer.from(`${CREDENTIAL.username}:${CREDENTIAL.password}`).toString("base64")}`;

export interface RegistryOptions {
  /** The address it listens on; loopback unless given, where engines ask for no TLS. */
  readonly host?: string;
  readonly needsCredential?: boolean;
}

/** A registry of images. */
export interface Registry extends AsyncDisposable {
  /** What the names of its images begin with. */
  readonly address: string;
}

/** The first call ever builds it. It keeps its images in memory, behind a door that has an address and asks who comes. */
export async function startRegistry({
  host = LOOPBACK,
  needsCredential = false,
}: RegistryOptions = {}): Promise<Registry> {
  const program = await provideRegistry();
  const port = await freePort();
  const child = spawn(SETPRIV, ["--pdeathsig", "KILL", program, "-port", String(port)], { stdio: "ignore" });
  const door = createServer((incoming, answer) => {
    if (!needsCredential || incoming.headers.authorization === AUTHORIZATION) passOn(incoming, answer, port);
    else answer.writeHead(401, { "www-authenticate": 'Basic realm="test"' }).end();
  });
  const doorPort = await freePort(host);
  door.listen(doorPort, host);
  const registry = {
    address: `${host}:${doorPort}`,
    async [Symbol.asyncDispose]() {
      door.closeAllConnections();
      door.close();
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
  for (let attempt = 0; attempt < ATTEMPTS && child.exitCode === null; attempt += 1) {
    const response = await fetch(`http://${LOOPBACK}:${port}/v2/`).catch(() => undefined);
    await response?.body?.cancel();
    if (response !== undefined) return registry;
    await sleep(PAUSE_MS);
  }
  await registry[Symbol.asyncDispose]();
  throw new Error(`the registry at ${registry.address} does not answer`);
}

function passOn(incoming: IncomingMessage, answer: ServerResponse, port: number): void {
  const { method, url, headers } = incoming;
  const passed = request({ host: LOOPBACK, port, method, path: url, headers }, (response) => {
    answer.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(answer);
  });
  passed.on("error", () => answer.destroy());
  answer.on("close", () => passed.destroy());
  incoming.pipe(passed);
}
