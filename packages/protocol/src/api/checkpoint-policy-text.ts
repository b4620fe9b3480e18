import type { z } from "zod";
import { checkpointPolicyBodySchema } from "./checkpoint.ts";

type CheckpointPolicyBody = z.infer<typeof checkpointPolicyBodySchema>;

const triggers = { idle: "onIdle", disconnect: "onDisconnect", command: "perCommand" } as const;
const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };

export const CHECKPOINT_POLICY_SYNTAX = 'such as "idle,every=5m,keep=3", or "none"';

/**
 * Reads a checkpoint policy from one line, such as `idle,every=5m,keep=3`. Null for `none`, and undefined if the text is
 * invalid.
 */
export function parseCheckpointPolicy(text: string): CheckpointPolicyBody | null | undefined {
  if (text === "none") return null;
  const policy: Record<string, unknown> = {};
  for (const word of text.split(",")) {
    const [, field = "", value = "", unit = ""] = /^(every|keep)=([0-9]{1,9})([smh]?)$/.exec(word) ?? [];
    if (Object.hasOwn(triggers, word)) policy[triggers[word as keyof typeof triggers]] = true;
    else if (field === "every" && unit !== "") policy["everyMs"] = Number(value) * (UNIT_MS[unit] as number);
    else if (field === "keep" && unit === "") policy["keepLast"] = Number(value);
    else return undefined;
  }
  return checkpointPolicyBodySchema.safeParse(policy).data;
}
