import { z } from "zod";

/** The identity of a sandbox, and of the instance that runs it: a UUID v4. */
export const sandboxIdSchema = z.uuidv4().brand<"SandboxId">();

export type SandboxId = z.infer<typeof sandboxIdSchema>;

export function createSandboxId(randomUuid: () => string = () => crypto.randomUUID()): SandboxId {
  return sandboxIdSchema.parse(randomUuid());
}

export function isSandboxId(value: unknown): value is SandboxId {
  return sandboxIdSchema.safeParse(value).success;
}
