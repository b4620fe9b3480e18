import { setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, type Sandbox } from "@sandpiper/sdk";
import { ATTACK_PROGRAM, type Attack } from "./attacks.ts";

export interface HostileRequest {
  readonly url: string;
  readonly apiKey: string;
  readonly id: string;
  readonly attack: Attack;
}

const TERMINALS = 10;
const RETRY_MS = 5;
/** A real caller is on another machine and takes no CPU time from the node. */
const LOWEST_PRIORITY = 19;

setPriority(LOWEST_PRIORITY);
const { url, apiKey, id, attack } = JSON.parse(process.argv[2] as string) as HostileRequest;
const sandbox = await new Client({ url, apiKey }).sandboxes.connect(id);
// The sandbox is destroyed under this program, which then ends.
process.on("unhandledRejection", () => process.exit(0));
process.on("disconnect", () => process.exit(0));
await start(sandbox, attack);
process.send?.("started");

/** Resolves when the attack runs; it continues after that. */
async function start(target: Sandbox, { args, company }: Attack): Promise<void> {
  if (company === "terminals") {
    const options = { rows: 24, cols: 80, command: [...args] };
    const terminals = await Promise.all(Array.from({ length: TERMINALS }, () => target.pty(options)));
    for (const terminal of terminals) void drain(terminal.output);
    return;
  }
  const running = await target.start([ATTACK_PROGRAM, ...args], { user: "root" });
  for await (const _ of running.output) break;
  if (company === "watch") void drain(await target.watch("/tmp", { recursive: true }));
  if (company === "execs") void keepRunning(target);
}

async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

async function keepRunning(target: Sandbox): Promise<void> {
  for (;;) {
    await target.exec(["/bin/true"]).catch(() => undefined);
    await sleep(RETRY_MS);
  }
}
