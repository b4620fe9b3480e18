import { setTimeout as sleep } from "node:timers/promises";
import { guestProcesses, instanceProcesses, mainProcesses } from "../instance-processes.ts";
import type { Fault, FaultContext } from "./fault.ts";

/** The panic ends the command without an answer. */
const PANIC_MS = 3000;

type Find = (context: FaultContext) => Promise<readonly number[]>;

const killed =
  (what: string, find: Find): Fault["inject"] =>
  async (context) => {
    const pids = await find(context);
    context.log(`kill -9 ${what} of ${describe(context)}: ${pids.length} processes`);
    signal(pids, "SIGKILL");
  };

/** The first process of a machine is its agent, which only its own kernel can end. */
const guestKilled: Fault["inject"] = async (context) => {
  const { bed, sandbox, random, log } = context;
  if (sandbox.provider !== "qemu") {
    return await killed("a guest process", () => guestProcesses(bed, sandbox))(context);
  }
  log(`kernel panic in ${describe(context)}`);
  const signal = AbortSignal.timeout(PANIC_MS);
  const client = random.pick(bed.nodes).client(bed.apiKey);
  const handle = await client.sandboxes.connect(sandbox.id, { signal }).catch(() => undefined);
  await handle?.exec("echo c > /proc/sysrq-trigger", { user: "root", signal }).catch(() => {});
};

const stopped: Fault["inject"] = async (context) => {
  const forMs = context.random.between(500, 5000);
  const pids = await instanceProcesses(context.bed, context.sandbox);
  context.log(`SIGSTOP the instance of ${describe(context)} for ${forMs} ms: ${pids.length} processes`);
  signal(pids, "SIGSTOP");
  await sleep(forMs);
  signal(pids, "SIGCONT");
};

/** Kills the instance of a sandbox, so that its next use reads its checkpoint. */
export async function killInstance({ bed, sandbox }: Pick<FaultContext, "bed" | "sandbox">): Promise<void> {
  signal(await mainProcesses(bed, sandbox), "SIGKILL");
}

function describe({ sandbox: { id, provider } }: FaultContext): string {
  return `${provider} ${id}`;
}

function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // The process has ended.
    }
  }
}

export const instanceFaults: readonly Fault[] = [
  {
    area: "instance",
    kind: "instance: kill -9 of Sentry, QEMU or container",
    inject: killed("the instance", ({ bed, sandbox }) => mainProcesses(bed, sandbox)),
  },
  {
    area: "instance",
    kind: "instance: kill -9 inside its guest",
    inject: guestKilled,
  },
  { area: "instance", kind: "instance: SIGSTOP", inject: stopped },
];
