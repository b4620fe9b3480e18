import { containerSchema, imageSchema, SandboxError } from "@sandpiper/protocol";
import { z } from "zod";
import type { ContainerOptions } from "../containers.ts";

/** The options of a sandbox; all have defaults. */
export interface SandboxConfigOptions {
  /** Primary language, the default of executeCode. */
  readonly language?: string | undefined;
  /** "host", the absolute path of a directory or disk image, or the name of an image in the manager's imagesDir. */
  readonly rootfs?: string | undefined;
  /** Absolute path of a kernel image; VM providers only. */
  readonly kernel?: string | undefined;
  /** Directory in which the provider keeps its instances; only its own is accepted. */
  readonly chroot?: string | undefined;
  readonly memoryMib?: number | undefined;
  /** How many CPUs' worth of time it may use; up to two decimals. */
  readonly vcpuCount?: number | undefined;
  readonly diskMib?: number | undefined;
  readonly maxProcesses?: number | undefined;
  /** Maximum execution time: the default timeoutMs of every exec. */
  readonly timeoutMs?: number | undefined;
  /** Firecracker's guest address; a manager assigns it. */
  readonly vsockCid?: number | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Default user of commands: a name, "uid" or "uid:gid". */
  readonly user?: string | undefined;
  /** Default working directory of commands. */
  readonly cwd?: string | undefined;
  readonly name?: string | undefined;
  /** Options of its container; only for providers of containers. */
  readonly container?: ContainerOptions | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

type Optional = "language" | "kernel" | "chroot" | "timeoutMs" | "user" | "cwd" | "name" | "container";

/** Complete, checked and frozen. */
export type SandboxConfig = {
  readonly [Field in keyof Required<SandboxConfigOptions>]: Field extends Optional
    ? SandboxConfigOptions[Field]
    : NonNullable<SandboxConfigOptions[Field]>;
};

const absolutePath = z.string().regex(/^\/[^\0]*$/);
const positive = z.int().min(1);
const shortText = z.string().min(1).max(128);
const noNul = z.string().regex(/^[^\0]*$/);

/** Longer than a caller's name, because a node adds the tenant as a prefix. */
const projectName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,62}$/);

const schema = z.strictObject({
  language: shortText.optional(),
  rootfs: z.union([absolutePath, z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)]).default("host"),
  kernel: absolutePath.optional(),
  chroot: absolutePath.optional(),
  memoryMib: positive.default(256),
  vcpuCount: z
    .number()
    .positive()
    .refine((count) => Math.abs(count * 100 - Math.round(count * 100)) < 1e-6)
    .default(2),
  diskMib: positive.default(1024),
  maxProcesses: positive.default(256),
  timeoutMs: positive.optional(),
  vsockCid: z
    .int()
    .min(3)
    .max(2 ** 32 - 2)
    .default(3),
  env: z.record(z.string().regex(/^[^=\0]+$/), noNul).default({}),
  user: shortText.optional(),
  cwd: absolutePath.optional(),
  name: shortText.optional(),
  container: containerSchema.extend({ image: imageSchema.optional(), project: projectName.optional() }).optional(),
  labels: z.record(z.string().regex(/^(?!sandpiper\.).{1,128}$/), z.string().max(4096)).default({}),
});

const allowed: Readonly<Record<keyof SandboxConfigOptions, string>> = {
  language: "a language's name, such as python",
  rootfs: '"host", an absolute path or the name of an image',
  kernel: "an absolute path",
  chroot: "an absolute path",
  memoryMib: "a whole number of MiB, at least 1",
  vcpuCount: "a number above 0 with at most two decimals",
  diskMib: "a whole number of MiB, at least 1",
  maxProcesses: "a whole number, at least 1",
  timeoutMs: "a whole number of milliseconds, at least 1",
  vsockCid: "a whole number from 3 to 4294967294",
  env: "strings by name, without = in a name and without NUL",
  user: 'a user name, "uid" or "uid:gid"',
  cwd: "an absolute path",
  name: "1 to 128 characters",
  container: "the fields in docs/docker.md",
  labels: 'texts of at most 4096 characters by key; keys starting with "sandpiper." are reserved',
};

/** Checks and completes options; the error lists each wrong field with its value and the allowed ones. */
export function parseSandboxConfig(options: SandboxConfigOptions = {}): SandboxConfig {
  const parsed = schema.safeParse(options);
  if (!parsed.success) throw configError(options, parsed.error);
  const { env, labels, ...rest } = parsed.data;
  const none = { language: undefined, kernel: undefined, chroot: undefined, timeoutMs: undefined };
  const config = { ...none, user: undefined, cwd: undefined, name: undefined, container: undefined, ...rest };
  return Object.freeze({ ...config, env: Object.freeze(env), labels: Object.freeze(labels) });
}

function configError(options: unknown, error: z.ZodError): SandboxError {
  const problems = error.issues.map((issue) => {
    if (issue.code === "unrecognized_keys") {
      return `unknown field ${issue.keys.join(", ")}; fields are ${Object.keys(allowed).join(", ")}`;
    }
    const field = issue.path[0] as keyof SandboxConfigOptions | undefined;
    if (field === undefined) return "not an object";
    const value = (options as SandboxConfigOptions)[field];
    // Environment values may be secrets, so they are not repeated.
    const what = field === "env" ? `env (${String(issue.path[1])})` : `${field} ${shown(value)}`;
    return `${what} is not allowed; expected ${allowed[field]}`;
  });
  return new SandboxError("invalid_config", {
    message: `invalid sandbox config: ${problems.join("; ")}`,
    details: { fields: error.issues.map((issue) => issue.path.join(".")) },
  });
}

function shown(value: unknown): string {
  const text = typeof value === "bigint" ? `${value}n` : (JSON.stringify(value) ?? String(value));
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** Collects options one by one; `build` checks them all. `env`, `labels` and `container` add to earlier calls. */
export type SandboxConfigBuilder = {
  readonly [Field in keyof SandboxConfigOptions]-?: (
    value: NonNullable<SandboxConfigOptions[Field]>,
  ) => SandboxConfigBuilder;
} & { build(): SandboxConfig };

function createBuilder(): SandboxConfigBuilder {
  const options: Record<string, unknown> = {};
  const setter = (field: string) => (value: unknown) => {
    const isAdded = field === "env" || field === "labels" || field === "container";
    options[field] = isAdded ? { ...(options[field] as object), ...(value as object) } : value;
    return builder;
  };
  const setters = Object.fromEntries(Object.keys(allowed).map((field) => [field, setter(field)]));
  const builder = { ...setters, build: () => parseSandboxConfig(options) } as SandboxConfigBuilder;
  return builder;
}

export const SandboxConfig = {
  parse: parseSandboxConfig,
  /** `SandboxConfig.builder().memoryMib(512).vcpuCount(4).build()` */
  builder: createBuilder,
} as const;
