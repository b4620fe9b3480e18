import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { SandboxError } from "@sandpiper/core";
import type { RegistryCredential } from "./registry-credential.ts";

const TIMEOUT_MS = 10_000;
/** As a name the helpers say so of what is a token. */
const TOKEN = "<token>";

/** Asks the program that keeps credentials for Docker's client; undefined when it has none for the registry. */
export async function askCredentialHelper(
  name: string,
  serveraddress: string,
): Promise<RegistryCredential | undefined> {
  const program = `docker-credential-${name}`;
  const child = spawn(program, ["get"], { stdio: ["pipe", "pipe", "ignore"], timeout: TIMEOUT_MS });
  const failed = new Promise<never>((_, reject) => child.once("error", reject));
  child.stdin.on("error", () => undefined);
  child.stdin.end(serveraddress);
  try {
    const output = await Promise.race([text(child.stdout), failed]);
    // It says in words, which differ, that it has none.
    if (!output.trimStart().startsWith("{")) return undefined;
    const { Username = "", Secret = "" } = JSON.parse(output) as {
      readonly Username?: string;
      readonly Secret?: string;
    };
    if (Username === TOKEN) return { serveraddress, username: "", password: "", identitytoken: Secret };
    return { serveraddress, username: Username, password: Secret };
  } catch (cause) {
    throw new SandboxError("failed_precondition", {
      reason: "credential_helper",
      message: `${program}, which keeps the credential for ${serveraddress}, did not answer`,
      hint: `install ${program}, or take it out of Docker's config.json`,
      cause,
    });
  }
}
