import { type Client, type Sandbox, SandboxError } from "@sandpiper/sdk";
import type { ChaosNode } from "./chaos-node.ts";
import type { Random } from "./random.ts";

const REQUEST_MS = 30_000;

interface RequestContext {
  readonly id: string;
  readonly nodes: readonly ChaosNode[];
  readonly clients: readonly Client[];
  readonly apiKey: string;
  readonly random: Random;
  /** Called for each new sandbox, so that the run destroys it at the end. */
  readonly onMade: (id: string) => void;
}

/** A client's request during a fault. It may fail; acknowledged writes must survive it. */
export type ChaosRequest = (context: RequestContext) => Promise<void>;

async function connected({ id, clients, random }: RequestContext, signal: AbortSignal): Promise<Sandbox> {
  return await random.pick(clients).sandboxes.connect(id, { signal });
}

const handedOff: ChaosRequest = async ({ id, nodes, apiKey, random }) => {
  const response = await fetch(`${random.pick(nodes).url}/v1/sandboxes/${id}/handoff`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ takeover: random.next() < 0.5 }),
    signal: AbortSignal.timeout(REQUEST_MS),
  });
  const body = (await response.json()) as { error?: { reason?: string } };
  if (!response.ok) {
    throw SandboxError.fromFields({
      code: "unavailable",
      reason: body.error?.reason ?? "refused",
      message: "not handed off",
    });
  }
};

const saved: ChaosRequest = async (context) => {
  const signal = AbortSignal.timeout(REQUEST_MS);
  await (await connected(context, signal)).checkpoint({ keepLast: 3, signal });
};

const pausedAndResumed: ChaosRequest = async (context) => {
  const signal = AbortSignal.timeout(REQUEST_MS);
  const sandbox = await connected(context, signal);
  try {
    await sandbox.pause({ signal });
  } finally {
    await (await connected(context, signal)).resume({ signal });
  }
};

const rolledBack: ChaosRequest = async (context) => {
  const signal = AbortSignal.timeout(REQUEST_MS);
  await (await connected(context, signal)).rollback(undefined, { signal });
};

const forked: ChaosRequest = async (context) => {
  const signal = AbortSignal.timeout(REQUEST_MS);
  const forks = await (await connected(context, signal)).fork({ count: 2, signal });
  for (const { id } of forks) context.onMade(id);
  for (const fork of forks) await fork.exec("true", { signal });
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
