import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSandboxId } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { createTransientMachine } from "../host/transient-machine.ts";
import { findQemuState } from "./host.ts";

it("keeps the paths of transient machines as short as those of instances, so that sockets fit", async () => {
  const stateDirectory = await mkdtemp(join(tmpdir(), "sandpiper-transient-"));
  try {
    const state = findQemuState(stateDirectory);
    const { directory } = await createTransientMachine(state);
    expect(directory.length).toBeLessThanOrEqual(state.machineDirectory(createSandboxId()).length);
  } finally {
    await rm(stateDirectory, { recursive: true });
  }
});
