import { SandboxError } from "@sandpiper/core";

/** The WebSockets there are. */
export type SocketRoute =
  | { readonly name: "socket" }
  | { readonly name: "create"; readonly query: URLSearchParams }
  | { readonly name: "attach"; readonly id: string; readonly query: URLSearchParams };

/** Throws `not_found` for what is none. */
export function socketRoute(url: string): SocketRoute {
  const at = url.indexOf("?");
  const path = at === -1 ? url : url.slice(0, at);
  const query = new URLSearchParams(at === -1 ? "" : url.slice(at));
  if (path === "/v1/socket") return { name: "socket" };
  if (path === "/create") return { name: "create", query };
  const id = /^\/attach\/([^/]+)$/.exec(path)?.[1];
  if (id !== undefined) return { name: "attach", id, query };
  throw new SandboxError("not_found", {
    reason: "no_such_route",
    message: `there is no WebSocket at ${path.slice(0, 256)}`,
    hint: "WebSockets are at /v1/socket, /create and /attach/<sandbox id>",
  });
}
