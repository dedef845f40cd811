// Stored values that have the form of `initial`; another version of the page may have stored others.
export function merged<T extends object>(initial: T, stored: string | null): T {
  const result: Record<string, unknown> = { ...(initial as Record<string, unknown>) };
  let found: Record<string, unknown> = {};
  try {
    found = (JSON.parse(stored ?? "{}") ?? {}) as Record<string, unknown>;
  } catch {
    return result as T;
  }
  for (const [name, value] of Object.entries(result)) {
    const other = found[name];
    if (typeof other === typeof value && Array.isArray(other) === Array.isArray(value) && other !== null) result[name] = other;
  }
  return result as T;
}
