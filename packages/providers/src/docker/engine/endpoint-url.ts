import { SandboxError } from "@sandpiper/core";

const PORT = "2375";
const TLS_PORT = "2376";

/** Reads an address of an engine as Docker's client does: `unix:`, `tcp:`, `http:`, `https:`, or a host and a port alone. */
export function parseEndpointUrl(
  text: string,
  { origin, isTls }: { readonly origin: string; readonly isTls: boolean },
) {
  const shown = text.replace(/:[^:/@]*@/, ":…@");
  const refuse = (why: string, hint: string) =>
    new SandboxError("invalid_argument", {
      reason: "engine_url",
      message: `the engine's address ${JSON.stringify(shown)} (${origin}) cannot be used: ${why}`,
      hint,
    });
  const forms = "give something like unix:///var/run/docker.sock or tcp://127.0.0.1:2375";
  const full = text.includes("://") ? text : `tcp://${text}`;
  const scheme = full.slice(0, full.indexOf("://"));
  if (scheme === "ssh") {
    const target = full.slice("ssh://".length).replace(/\/.*$/, "");
    const forward = `ssh -nNT -L /tmp/engine.sock:/var/run/docker.sock ${target}`;
    throw refuse(
      "an engine is not reached over ssh",
      `forward its socket (${forward}) and give unix:///tmp/engine.sock`,
    );
  }
  if (scheme === "unix") return unixUrl(full, () => refuse("it names no absolute path", forms));
  if (scheme !== "tcp" && scheme !== "http" && scheme !== "https") throw refuse(`${scheme}: is not known`, forms);
  const protocol = scheme === "https" || isTls ? "https" : "http";
  const url = URL.parse(`${protocol}://${full.slice(scheme.length + 3)}`);
  if (url === null || url.hostname === "") throw refuse("it names no host", forms);
  if (url.pathname !== "/" || url.search !== "") throw refuse("it has a path, which engines do not have", forms);
  if (url.username !== "") throw refuse("it has a credential, which engines do not take", forms);
  if (url.port === "" && scheme === "tcp") url.port = protocol === "https" ? TLS_PORT : PORT;
  return url;
}

function unixUrl(text: string, refused: () => SandboxError): URL {
  const path = text.slice("unix://".length);
  if (!path.startsWith("/")) throw refused();
  const url = new URL("unix:///");
  url.pathname = path.split("/").map(encodeURIComponent).join("/");
  return url;
}
