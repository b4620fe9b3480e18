/** Converts the USER of an image to a user of the agent: a name, "uid" or "uid:gid"; empty if the image has none. */
export function userOf(user: string): string {
  const [name = "", group = ""] = user.split(":");
  const isNumber = (text: string) => /^\d+$/.test(text);
  // For a user name, the agent finds the groups itself.
  return isNumber(name) && isNumber(group) ? user : name;
}
