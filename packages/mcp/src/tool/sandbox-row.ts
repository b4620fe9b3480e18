import type { SandboxResource } from "@sandpiper/sdk";
import { z } from "zod";
import type { McpSession } from "../session/mcp-session.ts";

/** What tools tell of a sandbox. Its token is not among it: a model has no use for it, and what it reads may be logged. */
export const sandboxFields = {
  sandbox_id: z.string(),
  name: z.string().nullable(),
  state: z.string(),
  provider: z.string(),
  image: z.string(),
  memory_mib: z.number(),
  vcpu_count: z.number(),
  disk_mib: z.number(),
  created_at: z.string(),
  is_default: z.boolean().describe("Used by calls without sandbox_id."),
  is_temporary: z.boolean().describe("Destroyed when the session ends."),
};

type SandboxRow = z.infer<z.ZodObject<typeof sandboxFields>>;

export function sandboxRow(info: SandboxResource, session: McpSession): SandboxRow {
  return {
    sandbox_id: info.id,
    name: info.name,
    state: info.state,
    provider: info.provider,
    image: info.image,
    memory_mib: info.memoryMib,
    vcpu_count: info.vcpuCount,
    disk_mib: info.diskMib,
    created_at: info.createdAt,
    is_default: info.id === session.defaultId,
    is_temporary: session.isTemporary(info.id),
  };
}
