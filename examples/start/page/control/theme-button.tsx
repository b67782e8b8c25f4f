import { type ReactNode, useState } from "react";
import { IconButton } from "./icon-button.tsx";
import { readSaved, save } from "./saved.ts";

const KEY = "perdure:theme";
const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];
const icons = { system: "screen", light: "sun", dark: "moon" } as const;

/** Goes from the system's theme to light to dark and around. The choice is kept; index.html applies it on load. */
export function ThemeButton(): ReactNode {
  const [theme, setTheme] = useState(savedTheme);
  const next = themes[(themes.indexOf(theme) + 1) % themes.length] ?? "system";
  const choose = () => {
    setTheme(next);
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    save(() => localStorage, KEY, next === "system" ? undefined : next);
  };
  return (
    <IconButton
      icon={icons[theme]}
      label={`Theme: ${theme}. Change to ${next}`}
      onClick={choose}
      data-testid="theme"
      data-theme-choice={theme}
    />
  );
}

function savedTheme(): Theme {
  const saved = readSaved(() => localStorage, KEY);
  return themes.find((theme) => theme === saved) ?? "system";
}
