import { fileURLToPath } from "node:url";
import { type ObjectStore, SandboxError } from "@sandpiper/core";
import { DirectoryStore } from "./directory-store.ts";
import { GcsStore } from "./gcs-store.ts";
import { S3Store } from "./s3-store.ts";

/** Google also allows underscores, and Amazon used to. */
const BUCKET = /^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/;

/** Opens `file:///directory`, `s3://bucket/prefix` or `gs://bucket/prefix` without any access to it yet. */
export function openStore(url: string): ObjectStore {
  const parsed = URL.parse(url);
  if (parsed === null) throw badUrl(url, "it is not a URL");
  if (parsed.search !== "" || parsed.hash !== "") throw badUrl(url, "it has a query or a fragment");
  if (parsed.protocol === "file:") return openDirectory(url, parsed);
  if (parsed.protocol === "s3:") return new S3Store(parseBucket(url, parsed));
  if (parsed.protocol === "gs:") return new GcsStore(parseBucket(url, parsed));
  throw badUrl(url, `the scheme ${parsed.protocol} is not supported`);
}

function openDirectory(url: string, parsed: URL): ObjectStore {
  if (parsed.hostname !== "" || !/^file:\/\/\//i.test(url)) throw badUrl(url, "the path is not absolute");
  try {
    return new DirectoryStore(fileURLToPath(parsed));
  } catch {
    throw badUrl(url, "the path is invalid");
  }
}

function parseBucket(url: string, parsed: URL): { readonly bucket: string; readonly prefix: string } {
  if (parsed.username !== "" || parsed.password !== "") throw badUrl(url, "it contains credentials");
  if (!BUCKET.test(parsed.hostname) || parsed.port !== "") throw badUrl(url, "the bucket name is invalid");
  const prefix = parsed.pathname.replace(/^\/+|\/+$/g, "");
  if (prefix !== "" && !/^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/.test(prefix))
    throw badUrl(url, "the prefix is invalid");
  return { bucket: parsed.hostname, prefix };
}

function badUrl(url: string, why: string): SandboxError {
  // The URL may contain a password.
  const shown = url.replace(/\/\/[^/@]*@/, "//***@").slice(0, 200);
  return new SandboxError("bad_store_url", { message: `invalid store URL ${JSON.stringify(shown)}: ${why}` });
}
