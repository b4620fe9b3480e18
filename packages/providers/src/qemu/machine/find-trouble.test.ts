import { expect, it } from "vitest";
import type { QmpClient } from "../qmp/qmp-client.ts";
import { continueBlocked, findTrouble } from "./find-trouble.ts";

/** A monitor that reports a machine status, and records commands. */
function monitorOf(status: string, commands: string[] = []): Pick<QmpClient, "execute"> {
  const execute = async (command: string) => {
    commands.push(command);
    return { status, running: status === "running" };
  };
  return { execute: execute as QmpClient["execute"] };
}

it.each(["internal-error", "guest-panicked"])("reports a machine in the state %s as failed", async (status) => {
  expect(await findTrouble(monitorOf(status))).toContain(status);
});

it.each(["running", "paused", "postmigrate"])("accepts a machine in the state %s", async (status) => {
  expect(await findTrouble(monitorOf(status))).toBeUndefined();
});

it("lets a machine continue that a full disk of the host has stopped", async () => {
  const commands: string[] = [];
  expect(await continueBlocked(monitorOf("io-error", commands))).toBe(true);
  expect(commands).toEqual(["query-status", "cont"]);
});

it.each(["running", "paused", "guest-panicked"])("does not continue a machine in the state %s", async (status) => {
  const commands: string[] = [];
  expect(await continueBlocked(monitorOf(status, commands))).toBe(false);
  expect(commands).not.toContain("cont");
});
