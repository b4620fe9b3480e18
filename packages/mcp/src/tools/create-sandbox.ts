import { z } from "zod";
import { envInput, languageInput } from "../tool/fields.ts";
import { sandboxFields, sandboxRow } from "../tool/sandbox-row.ts";
import { defineTool } from "../tool/tool.ts";

const MAX_IDLE_SECONDS = 30 * 24 * 3600;

export const createSandbox = defineTool({
  name: "create_sandbox",
  title: "Create a sandbox",
  description:
    "Creates a sandbox in addition to the default one and returns its id. It is destroyed when the session ends, unless keep is true. Only needed for a second sandbox, other limits, another image, or a sandbox to keep.",
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  input: z.object({
    name: z.string().min(1).max(128).optional().describe("A name for people."),
    memory_mib: z.int().min(1).optional().describe("Memory in MiB."),
    vcpu_count: z.number().positive().optional().describe("How many CPUs it may use."),
    disk_mib: z.int().min(1).optional().describe("Disk in MiB."),
    image: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe('The image to start from, such as "python:3.13", if the server offers containers.'),
    provider: z
      .enum(["gvisor", "qemu", "firecracker", "docker", "vm-docker", "local"])
      .optional()
      .describe("The provider that runs it; the server's default if omitted."),
    project: z
      .string()
      .regex(/^[a-z0-9][a-z0-9_-]{0,39}$/)
      .optional()
      .describe("The project of a container. With vm-docker, sandboxes of one project share a virtual machine."),
    language: languageInput.describe("The default language of execute_code; python if omitted."),
    env: envInput.describe("Environment variables of all its commands."),
    keep: z.boolean().optional().describe("If true, it outlives the session until it is destroyed."),
    idle_timeout_seconds: z
      .int()
      .min(1)
      .max(MAX_IDLE_SECONDS)
      .optional()
      .describe("Destroys the sandbox after this time without use."),
  }),
  output: z.object(sandboxFields),
  async run(
    { name, memory_mib, vcpu_count, disk_mib, image, provider, project, language, env, keep, idle_timeout_seconds },
    { session },
  ) {
    const sandbox = await session.create(
      {
        ...(name !== undefined && { name }),
        ...(memory_mib !== undefined && { memoryMib: memory_mib }),
        ...(vcpu_count !== undefined && { vcpuCount: vcpu_count }),
        ...(disk_mib !== undefined && { diskMib: disk_mib }),
        ...(image !== undefined && { image }),
        ...(provider !== undefined && { provider }),
        ...(project !== undefined && { container: { project } }),
        ...(language !== undefined && { language }),
        ...(env !== undefined && { env }),
        ...(idle_timeout_seconds !== undefined && { idleTimeoutMs: idle_timeout_seconds * 1000 }),
      },
      { keep },
    );
    const row = sandboxRow(sandbox.info, session);
    const end = row.is_temporary ? "It is destroyed when the session ends." : "It stays until destroy_sandbox.";
    return { text: `Sandbox ${row.sandbox_id} is ${row.state}. ${end}`, structured: row };
  },
});
