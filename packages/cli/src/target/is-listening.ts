import { connect } from "node:net";

/** A machine of the same network answers within this time, or is not there. */
const PATIENCE_MS = 2_000;

/** Whether anything takes connections there; much cheaper than a request when nothing does. */
export function isListening(url: string): Promise<boolean> {
  const { hostname, port, protocol } = new URL(url);
  const defaultPort = protocol === "https:" ? 443 : 80;
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return new Promise((resolve) => {
    const socket = connect({ host, port: port === "" ? defaultPort : Number(port), timeout: PATIENCE_MS });
    const finish = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => finish(true));
    socket.once("error", () => finish(false));
    socket.once("timeout", () => finish(false));
  });
}
