import { createSandboxId } from "@sandpiper/protocol";
import { expect, it } from "vitest";
import { sharedDirectory } from "../host/testing/shared.ts";
import { createTransientMachine } from "../host/transient-machine.ts";
import { findQemuState } from "./host.ts";

const stateDirectory = sharedDirectory("transient");

it("keeps the paths of transient machines as short as those of instances, so that sockets fit", async () => {
  const state = findQemuState(stateDirectory);
  const { directory } = await createTransientMachine(state);
  expect(directory.length).toBeLessThanOrEqual(state.machineDirectory(createSandboxId()).length);
});
