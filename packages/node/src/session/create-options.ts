import { SandboxError } from "@sandpiper/core";
import { type CreateSandboxBody, createSandboxBodySchema, projectNameSchema } from "@sandpiper/protocol";

const bodySchema = createSandboxBodySchema.pick({
  name: true,
  provider: true,
  image: true,
  memoryMib: true,
  vcpuCount: true,
  diskMib: true,
  maxProcesses: true,
  language: true,
  cwd: true,
  user: true,
  timeoutMs: true,
  ttlMs: true,
  idleTimeoutMs: true,
});

/** A query has no nested fields, so the project of a container stands alone. */
const optionsSchema = bodySchema.extend({ project: projectNameSchema.optional() });

const numbers = /^(memoryMib|vcpuCount|diskMib|maxProcesses|timeoutMs|ttlMs|idleTimeoutMs)$/;

/** Parses the query of `/create`. */
export function createOptions(query: URLSearchParams): CreateSandboxBody {
  const entries = [...query].map(([key, text]) => [key, numbers.test(key) && text !== "" ? Number(text) : text]);
  const repeated = [...query.keys()].find((key, index, keys) => keys.indexOf(key) !== index);
  if (repeated !== undefined) throw invalid(`${repeated} occurs more than once`);
  const parsed = optionsSchema.safeParse(Object.fromEntries(entries));
  if (parsed.success) {
    const { project, ...body } = parsed.data;
    return project === undefined ? body : { ...body, container: { project } };
  }
  throw invalid(parsed.error.issues.map(({ path, message }) => [path.join("."), message].join(": ")).join("; "));
}

function invalid(problem: string): SandboxError {
  return new SandboxError("invalid_query", {
    message: `the query of /create is invalid: ${problem}`,
    hint: `allowed parameters: ${Object.keys(optionsSchema.shape).join(", ")}`,
  });
}
