import { spawn } from "node:child_process";
import { once } from "node:events";
import { provideGcsServer } from "../../../../../scripts/setup/servers.mjs";
import { freePort } from "./free-port.ts";
import { startGenerationProxy } from "./generation-proxy.ts";

const ATTEMPTS = 200;
const PAUSE_MS = 50;

export interface GcsServer extends AsyncDisposable {
  readonly endpoint: string;
  /** The variable that a process needs to reach the server. */
  readonly env: Readonly<Record<string, string>>;
  /** The emulator itself, which ignores the conditions of deletions. */
  readonly rawEndpoint: string;
  createBucket(name: string): Promise<void>;
}

/** Starts an emulator of Google Cloud Storage on a loopback port, with its objects in memory. The first call on a machine builds it. */
export async function startGcsServer(): Promise<GcsServer> {
  const program = await provideGcsServer();
  const port = await freePort();
  const rawEndpoint = `http://127.0.0.1:${port}`;
  const options = ["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", `${port}`];
  const child = spawn(program, [...options, "-log-level", "error"], { stdio: ["ignore", "ignore", "inherit"] });
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  await using parts = new AsyncDisposableStack();
  parts.defer(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      kill();
      await once(child, "exit");
    }
    process.off("exit", kill);
  });
  await untilAnswering(rawEndpoint, () => child.exitCode);
  const { endpoint } = parts.use(await startGenerationProxy(rawEndpoint));
  const owned = parts.move();
  return {
    endpoint,
    rawEndpoint,
    env: { STORAGE_EMULATOR_HOST: endpoint },
    async createBucket(name) {
      const response = await fetch(`${rawEndpoint}/storage/v1/b`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name }),
      });
      if (!response.ok) throw new Error(`cannot create the bucket ${name}: ${await response.text()}`);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function untilAnswering(endpoint: string, exitCode: () => number | null): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (exitCode() !== null) throw new Error(`the Google Cloud Storage emulator exited with ${exitCode()}`);
    const response = await fetch(`${endpoint}/storage/v1/b`).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.ok === true) return;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  throw new Error(`the Google Cloud Storage emulator at ${endpoint} does not answer`);
}
