import { SandboxError } from "@sandpiper/core";

export function noSuchCache(project: string, name: string): SandboxError {
  return new SandboxError("not_found", {
    reason: "no_such_cache",
    message: `there is no cache ${JSON.stringify(name.slice(0, 64))} of project ${JSON.stringify(project.slice(0, 64))}`,
    hint: "list the caches to see those there are",
  });
}
