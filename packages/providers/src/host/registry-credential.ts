import { spawn } from "node:child_process";
import { homedir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { SandboxError } from "@sandpiper/core";
import { type DockerConfig, readDockerConfig, type StoredCredential } from "./docker-config.ts";

/** The credential with which an engine logs in to a registry. */
export interface RegistryCredential {
  readonly serveraddress: string;
  readonly username: string;
  readonly password: string;
  readonly identitytoken?: string;
}

/** The address under which Docker's client stores the credential for Docker Hub. */
const DOCKER_HUB = "https://index.docker.io/v1/";
const HELPER_TIMEOUT_MS = 10_000;
/** The user name with which helpers mark a token. */
const TOKEN = "<token>";

/** The credential that `docker login` stored for a registry, if any. */
export async function registryCredential(
  registry: string,
  directory = process.env["DOCKER_CONFIG"] || join(homedir(), ".docker"),
): Promise<RegistryCredential | undefined> {
  const config = await readDockerConfig(directory);
  const serveraddress = registry === "docker.io" ? DOCKER_HUB : registry;
  const helper = config.credHelpers?.[serveraddress] ?? config.credHelpers?.[registry] ?? config.credsStore;
  const kept = helper === undefined ? undefined : await askHelper(helper, serveraddress);
  return kept ?? fromFile(storedFor(config, serveraddress), serveraddress);
}

/** Asks a credential helper of Docker's client; undefined when it has no credential for the registry. */
async function askHelper(name: string, serveraddress: string): Promise<RegistryCredential | undefined> {
  const program = `docker-credential-${name}`;
  const child = spawn(program, ["get"], { stdio: ["pipe", "pipe", "ignore"], timeout: HELPER_TIMEOUT_MS });
  const failed = new Promise<never>((_, reject) => child.once("error", reject));
  child.stdin.on("error", () => undefined);
  child.stdin.end(serveraddress);
  try {
    const output = await Promise.race([text(child.stdout), failed]);
    // A helper without a credential prints a message, which differs between helpers.
    if (!output.trimStart().startsWith("{")) return undefined;
    const { Username = "", Secret = "" } = JSON.parse(output) as {
      readonly Username?: string;
      readonly Secret?: string;
    };
    if (Username === TOKEN) return { serveraddress, username: "", password: "", identitytoken: Secret };
    return { serveraddress, username: Username, password: Secret };
  } catch (cause) {
    throw new SandboxError("credential_helper", {
      message: `credential helper ${program} returned no credential for ${serveraddress}`,
      hint: `install ${program}, or remove it from Docker's config.json`,
      cause,
    });
  }
}

/** Keys may be URLs. */
function storedFor({ auths = {} }: DockerConfig, serveraddress: string): StoredCredential | undefined {
  const host = (text: string) => text.replace(/^https?:\/\//, "").replace(/\/.*$/, "");
  return auths[serveraddress] ?? Object.entries(auths).find(([key]) => host(key) === host(serveraddress))?.[1];
}

function fromFile(stored: StoredCredential | undefined, serveraddress: string): RegistryCredential | undefined {
  if (!stored?.auth) return undefined;
  const [username = "", ...password] = Buffer.from(stored.auth, "base64").toString().split(":");
  const token = stored.identitytoken ? { identitytoken: stored.identitytoken } : {};
  return { serveraddress, username, password: password.join(":"), ...token };
}
