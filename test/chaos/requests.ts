import { type Client, type Sandbox, SandboxError } from "@sandpiper/sdk";
import type { ChaosNode } from "./chaos-node.ts";
import type { Random } from "./random.ts";

interface RequestContext {
  readonly id: string;
  readonly nodes: readonly ChaosNode[];
  readonly clients: readonly Client[];
  readonly apiKey: string;
  readonly random: Random;
  /** Aborts at the request's deadline. */
  readonly signal: AbortSignal;
  /** Called for each new sandbox, so that the run destroys it at the end. */
  readonly onMade: (id: string) => void;
}

/** A client's request during a fault. It may fail; acknowledged writes must survive it. */
export type ChaosRequest = (context: RequestContext) => Promise<void>;

async function connected({ id, clients, random, signal }: RequestContext): Promise<Sandbox> {
  return await random.pick(clients).sandboxes.connect(id, { signal });
}

const handedOff: ChaosRequest = async ({ id, nodes, apiKey, random, signal }) => {
  const response = await fetch(`${random.pick(nodes).url}/v1/sandboxes/${id}/handoff`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ takeover: random.next() < 0.5 }),
    signal,
  }).catch((cause) => notHandedOff("node_unreachable", cause));
  const body = (await response.json()) as { reason?: string };
  if (!response.ok) notHandedOff(body.reason ?? "refused");
};

function notHandedOff(reason: string, cause?: unknown): never {
  throw SandboxError.fromFields({ code: "unavailable", reason, message: "not handed off", cause });
}

const saved: ChaosRequest = async (context) => {
  await (await connected(context)).checkpoint({ keepLast: 3, signal: context.signal });
};

const pausedAndResumed: ChaosRequest = async (context) => {
  const { signal } = context;
  const sandbox = await connected(context);
  try {
    await sandbox.pause({ signal });
  } finally {
    await (await connected(context)).resume({ signal });
  }
};

const rolledBack: ChaosRequest = async (context) => {
  await (await connected(context)).rollback(undefined, { signal: context.signal });
};

const forked: ChaosRequest = async (context) => {
  const { signal } = context;
  const forks = await (await connected(context)).fork({ count: 2, signal });
  for (const { id } of forks) context.onMade(id);
  for (const fork of forks) await fork.exec("true", { signal });
  for (const fork of forks) await fork.destroy({ signal });
};

/** A request that appears twice is picked twice as often. */
export const requests: readonly (readonly [string, ChaosRequest])[] = [
  ["handoff", handedOff],
  ["handoff", handedOff],
  ["checkpoint", saved],
  ["pause and resume", pausedAndResumed],
  ["rollback", rolledBack],
  ["fork", forked],
];
