import type { ContainerOptions, InstanceSpec } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { requireProject } from "./requirements.ts";

function projectOf(container: ContainerOptions | undefined): string {
  return requireProject({ id: createSandboxId(), container } as InstanceSpec);
}

it("a sandbox has to name its project, which says whose machine it runs in", () => {
  expect(projectOf({ project: "shop" })).toBe("shop");
  expect(() => projectOf(undefined)).toThrow("names no project");
  expect(() => projectOf({})).toThrow(expect.objectContaining({ reason: "project_required" }));
});

it("what a machine cannot give is refused before one is started", () => {
  const bind = { source: "/srv", target: "/srv", isReadOnly: true };
  expect(() => projectOf({ project: "shop", binds: [bind] })).toThrow(
    expect.objectContaining({ reason: "no_host_paths" }),
  );
  expect(() => projectOf({ project: "shop", workspace: { path: "/srv" } })).toThrow("no files of this one");
  expect(() => projectOf({ project: "shop", ports: [3000] })).toThrow(
    expect.objectContaining({ reason: "no_published_ports" }),
  );
});
