import type { ContainerOptions, InstanceSpec } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { requireProject } from "./requirements.ts";

function projectOf(container: ContainerOptions | undefined): string {
  return requireProject({ id: createSandboxId(), container } as InstanceSpec);
}

it("uses project default for sandboxes that name none", () => {
  expect(projectOf({ project: "shop" })).toBe("shop");
  expect(projectOf(undefined)).toBe("default");
  expect(projectOf({})).toBe("default");
});

it("rejects mounts of host directories before a machine is started", () => {
  const bind = { source: "/srv", target: "/srv", isReadOnly: true };
  expect(() => projectOf({ binds: [bind] })).toThrow(expect.objectContaining({ reason: "no_host_paths" }));
});
