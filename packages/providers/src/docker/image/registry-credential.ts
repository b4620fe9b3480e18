import { homedir } from "node:os";
import { join } from "node:path";
import { type DockerConfig, readDockerConfig, type StoredCredential } from "../engine/docker-config.ts";
import { askCredentialHelper } from "./credential-helper.ts";

/** What an engine is given to log in to a registry with. */
export interface RegistryCredential {
  readonly serveraddress: string;
  readonly username: string;
  readonly password: string;
  readonly identitytoken?: string;
}

/** Docker Hub goes by an address of long ago. */
const DOCKER_HUB = "https://index.docker.io/v1/";

/** The credential that `docker login` has kept for a registry, if there is one. */
export async function registryCredential(
  registry: string,
  directory = process.env["DOCKER_CONFIG"] || join(homedir(), ".docker"),
): Promise<RegistryCredential | undefined> {
  const config = await readDockerConfig(directory);
  const serveraddress = registry === "docker.io" ? DOCKER_HUB : registry;
  const helper = config.credHelpers?.[serveraddress] ?? config.credHelpers?.[registry] ?? config.credsStore;
  const kept = helper === undefined ? undefined : await askCredentialHelper(helper, serveraddress);
  return kept ?? fromFile(storedFor(config, serveraddress), serveraddress);
}

/** Keys may be written as URLs. */
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
