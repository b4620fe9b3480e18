/** Under these, strangers can have a name of their own within minutes; a wildcard would let a sandbox send them anything. */
const shared: ReadonlySet<string> = new Set([
  "amazonaws.com",
  "appspot.com",
  "azureedge.net",
  "azurewebsites.net",
  "blogspot.com",
  "cloudfront.net",
  "fly.dev",
  "github.io",
  "gitlab.io",
  "herokuapp.com",
  "netlify.app",
  "ngrok.io",
  "ngrok-free.app",
  "onrender.com",
  "pages.dev",
  "r2.dev",
  "readthedocs.io",
  "run.app",
  "surge.sh",
  "trycloudflare.com",
  "vercel.app",
  "web.app",
  "workers.dev",
]);

/** Second levels below which countries register names, such as `co.uk`. */
const SECOND_LEVELS = /^(?:ac|co|com|edu|go|gov|gob|net|ne|or|org)\.[a-z]{2}$/;

/** Whether the sub-domains of a name may belong to different owners. */
export function isSharedSuffix(name: string): boolean {
  const labels = name.split(".");
  if (labels.length < 2 || SECOND_LEVELS.test(name)) return true;
  // Storage and functions have regions between the owner's label and the shared name.
  return labels.some((_, index) => shared.has(labels.slice(index).join(".")));
}
