import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { requestSocket } from "../../host/socket-request.ts";
import { type InstalledDouble, installDouble } from "./install-double.ts";

interface BareAnswer {
  readonly status: number;
  readonly fault: string;
}

/** A double that runs in a directory, without the provider or a jail. */
export interface BareDouble extends AsyncDisposable {
  readonly directory: string;
  readonly process: ChildProcess;
  readonly socket: string;
  ask(method: string, path: string, body?: unknown): Promise<BareAnswer>;
}

export async function startBareDouble(): Promise<BareDouble> {
  const installed = await installDouble();
  const directory = await mkdtemp(join(tmpdir(), "fc-bare-"));
  const child = spawn(installed.firecracker, ["--api-sock", "/api.sock"], { cwd: directory, stdio: "ignore" });
  const socket = join(directory, "api.sock");
  const ask = (method: string, path: string, body?: unknown) => exchange(socket, { method, path }, body);
  while ((await ask("GET", "/").catch(() => undefined)) === undefined) await sleep(10);
  const dispose = () => end(child, directory, installed);
  return { directory, process: child, socket, ask, [Symbol.asyncDispose]: dispose };
}

async function end(child: ChildProcess, directory: string, installed: InstalledDouble): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  await rm(directory, { recursive: true });
  await installed[Symbol.asyncDispose]();
}

async function exchange(
  socketPath: string,
  target: { readonly method: string; readonly path: string },
  body: unknown,
): Promise<BareAnswer> {
  const { status, text } = await requestSocket({ socketPath, ...target, body: JSON.stringify(body) });
  return { status, fault: text === "" ? "" : (JSON.parse(text).fault_message ?? "") };
}
