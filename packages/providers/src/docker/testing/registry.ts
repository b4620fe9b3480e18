import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { provideRegistry } from "../../../../../scripts/setup/registry.mjs";
import { freePort } from "./free-port.ts";

/** Of util-linux: runs a program that ends with whoever started it. */
const SETPRIV = "setpriv";
const ATTEMPTS = 200;
const PAUSE_MS = 50;
/** What a registry that is not open to everybody wants. */
export const CREDENTIAL = { username: "test", password: "open sesame" };
const HTPASSWD = "test:$2y$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n";

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

/** The first call ever builds it. */
export async function startRegistry(options: RegistryOptions = {}): Promise<Registry> {
  const program = await provideRegistry();
  const directory = await mkdtemp(join(tmpdir(), "sandpiper-registry-"));
  const host = options.host ?? "127.0.0.1";
  const address = `${host}:${await freePort(host)}`;
  const auth = options.needsCredential === true ? { htpasswd: { realm: "test", path: join(directory, "users") } } : {};
  await writeFile(join(directory, "users"), HTPASSWD);
  const config = join(directory, "config.yml");
  // JSON is YAML, too.
  const settings = {
    version: 0.1,
    log: { level: "error", accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(directory, "images") } },
    http: { addr: address, secret: "only for tests" },
    auth,
  };
  await writeFile(config, JSON.stringify(settings));
  const env = { ...process.env, OTEL_TRACES_EXPORTER: "none" };
  const child = spawn(SETPRIV, ["--pdeathsig", "KILL", program, "serve", config], { stdio: "ignore", env });
  const registry = {
    address,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill("SIGKILL");
        await once(child, "exit");
      }
      await rm(directory, { recursive: true, force: true });
    },
  };
  for (let attempt = 0; attempt < ATTEMPTS && child.exitCode === null; attempt += 1) {
    const response = await fetch(`http://${address}/v2/`).catch(() => undefined);
    await response?.body?.cancel();
    if (response !== undefined) return registry;
    await sleep(PAUSE_MS);
  }
  await registry[Symbol.asyncDispose]();
  throw new Error(`the registry at ${address} does not answer`);
}
