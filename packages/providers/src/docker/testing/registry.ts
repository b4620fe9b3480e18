import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { provideRegistry } from "../../../../../scripts/setup/servers.mjs";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";

/** Of util-linux: runs a program that ends with its parent process. */
const SETPRIV = "setpriv";
const LOOPBACK = "127.0.0.1";
export const CREDENTIAL = { username: "test", password: "open sesame" };
const AUTHORIZATION = `Basic ${Buffer.from(`${CREDENTIAL.username}:${CREDENTIAL.password}`).toString("base64")}`;

export interface RegistryOptions {
  /** The listening address; loopback by default, where engines require no TLS. */
  readonly host?: string;
  readonly needsCredential?: boolean;
}

export interface Registry extends AsyncDisposable {
  /** The prefix of its images' names. */
  readonly address: string;
}

/** Starts a registry that keeps its images in memory, behind a proxy that checks credentials. The first call builds it. */
export async function startRegistry({
  host = LOOPBACK,
  needsCredential = false,
}: RegistryOptions = {}): Promise<Registry> {
  const program = await provideRegistry();
  const port = await freePort();
  const child = spawn(SETPRIV, ["--pdeathsig", "KILL", program, "-port", String(port)], { stdio: "ignore" });
  const proxy = createServer((incoming, answer) => {
    if (!needsCredential || incoming.headers.authorization === AUTHORIZATION) forward(incoming, answer, port);
    else answer.writeHead(401, { "www-authenticate": 'Basic realm="test"' }).end();
  });
  const proxyPort = await freePort(host);
  proxy.listen(proxyPort, host);
  const registry = {
    address: `${host}:${proxyPort}`,
    async [Symbol.asyncDispose]() {
      proxy.closeAllConnections();
      proxy.close();
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
  const isAnswering = async () => {
    const response = await fetch(`http://${LOOPBACK}:${port}/v2/`).catch(() => undefined);
    await response?.body?.cancel();
    return response !== undefined;
  };
  await eventually(isAnswering, `the registry at ${registry.address} does not answer`).catch(async (error: unknown) => {
    await registry[Symbol.asyncDispose]();
    throw error;
  });
  return registry;
}

function forward(incoming: IncomingMessage, answer: ServerResponse, port: number): void {
  const { method, url, headers } = incoming;
  const forwarded = request({ host: LOOPBACK, port, method, path: url, headers }, (response) => {
    answer.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(answer);
  });
  forwarded.on("error", () => answer.destroy());
  answer.on("close", () => forwarded.destroy());
  incoming.pipe(forwarded);
}
