import { SandboxError } from "@sandpiper/protocol";
import { z } from "zod";
import { parseSandboxConfig, type SandboxConfigOptions } from "../sandbox/sandbox-config.ts";

export interface ManagerConfigOptions {
  /** Default kernel of sandboxes; VM providers only. */
  readonly kernelPath?: string | undefined;
  /** Default root filesystem of sandboxes. */
  readonly rootfsPath?: string | undefined;
  /** The directory of named root filesystems. */
  readonly imagesDir?: string | undefined;
  /** Directory in which instances are kept; must be the provider's. */
  readonly chrootPath?: string | undefined;
  /** 0: no limit. */
  readonly maxSandboxes?: number | undefined;
  /** Defaults for the config of sandboxes. */
  readonly defaults?: SandboxConfigOptions | undefined;
}

/** Complete and checked. */
export type ManagerConfig = ManagerConfigOptions & {
  readonly maxSandboxes: number;
  readonly defaults: SandboxConfigOptions;
};

export const DEFAULT_MAX_SANDBOXES = 100;

const path = z
  .string()
  .regex(/^\/[^\0]*$/)
  .optional();
const schema = z.strictObject({
  kernelPath: path,
  rootfsPath: path,
  imagesDir: path,
  chrootPath: path,
  maxSandboxes: z.int().min(0).default(DEFAULT_MAX_SANDBOXES),
  defaults: z.record(z.string(), z.unknown()).default({}),
});

export function parseManagerConfig(options: ManagerConfigOptions = {}): ManagerConfig {
  const parsed = schema.safeParse(options);
  if (!parsed.success) throw configError(parsed.error);
  const defaults: SandboxConfigOptions = parsed.data.defaults;
  // Reports an invalid default now and not at the first create.
  parseSandboxConfig(defaults);
  return Object.freeze({ ...parsed.data, defaults: Object.freeze(defaults) });
}

function configError(error: z.ZodError): SandboxError {
  const [issue] = error.issues;
  const field = issue?.code === "unrecognized_keys" ? issue.keys.join(", ") : String(issue?.path[0] ?? "it");
  const allowed =
    issue?.code === "unrecognized_keys"
      ? `fields are ${Object.keys(schema.shape).join(", ")}`
      : field === "maxSandboxes"
        ? "expected a whole number, 0 for no limit"
        : field === "defaults"
          ? "expected a sandbox config"
          : "expected an absolute path";
  return new SandboxError("invalid_config", {
    message: `invalid manager config at ${field}: ${allowed}`,
    details: { field },
  });
}
