import { expect, it } from "vitest";
import type { QmpClient } from "../qmp/qmp-client.ts";
import { findTrouble } from "./find-trouble.ts";

/** A monitor that says that its machine is in some state. */
function monitorOf(status: string): Pick<QmpClient, "execute"> {
  return { execute: (async () => ({ status, running: status === "running" })) as QmpClient["execute"] };
}

it.each(["internal-error", "guest-panicked"])("a machine in the state %s cannot go on", async (status) => {
  expect(await findTrouble(monitorOf(status))).toContain(status);
});

it.each(["running", "paused", "postmigrate"])("a machine in the state %s is fine", async (status) => {
  expect(await findTrouble(monitorOf(status))).toBeUndefined();
});
