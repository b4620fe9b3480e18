import type { SandboxResource } from "@sandpiper/sdk";
import { z } from "zod";
import type { McpSession } from "../session/mcp-session.ts";

/** A sandbox in the answers of tools, without its token: a model does not need it, and its input may be logged. */
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
  is_default: z.boolean().describe("True if calls without sandbox_id use it."),
  is_temporary: z.boolean().describe("True if it is destroyed when the session ends."),
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
