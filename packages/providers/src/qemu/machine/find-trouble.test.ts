import { expect, it } from "vitest";
import type { QmpClient } from "../qmp/qmp-client.ts";
import { findTrouble } from "./find-trouble.ts";

/** A monitor that reports a machine status. */
function monitorOf(status: string): Pick<QmpClient, "execute"> {
  return { execute: (async () => ({ status, running: status === "running" })) as QmpClient["execute"] };
}

it.each(["internal-error", "guest-panicked"])("reports a machine in the state %s as failed", async (status) => {
  expect(await findTrouble(monitorOf(status))).toContain(status);
});

it.each(["running", "paused", "postmigrate"])("accepts a machine in the state %s", async (status) => {
  expect(await findTrouble(monitorOf(status))).toBeUndefined();
});
