import { useEffect, useState } from "react";

/** True once `value` has been true for `ms` without a break, so that a blink is not shown. */
export function useLasting(value: boolean, ms: number): boolean {
  const [lasted, setLasted] = useState(false);
  useEffect(() => {
    if (!value) return;
    const timer = setTimeout(() => setLasted(true), ms);
    return () => {
      clearTimeout(timer);
      setLasted(false);
    };
  }, [value, ms]);
  return value && lasted;
}
