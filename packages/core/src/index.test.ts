import { expect, it } from "vitest";
import * as core from "./index.ts";
import * as testing from "./testing/index.ts";

it("exports these values and no others", () => {
  expect(Object.keys(core).sort()).toEqual([
    "AgentClient",
    "DEFAULT_CONNECT_TIMEOUT_MS",
    "DEFAULT_MAX_FILE_BYTES",
    "DEFAULT_MAX_OUTPUT_BYTES",
    "DEFAULT_MAX_SANDBOXES",
    "DEFAULT_RPC_TIMEOUT_MS",
    "FencedStates",
    "KeyedMutex",
    "Leases",
    "Lifetime",
    "Sandbox",
    "SandboxConfig",
    "SandboxError",
    "SandboxManager",
    "UPLOAD_PIECE_BYTES",
    "WarmPool",
    "canTransition",
    "checkObjectSize",
    "checkStoreKey",
    "checkStorePrefix",
    "connectAgent",
    "exec",
    "fencedStateSchema",
    "lockAtRest",
    "lockKey",
    "pause",
    "repairLock",
    "sandboxTransitions",
    "serveNetwork",
    "stateKey",
    "stateNames",
    "systemClock",
  ]);
  expect(Object.keys(testing).sort()).toEqual([
    "FakeClock",
    "MemoryStore",
    "describeProvider",
    "describeStore",
    "rejection",
    "settle",
  ]);
});
