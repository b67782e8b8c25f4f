// The page that `npm start` opens.
import "./style/tokens.css";
import "./style/base.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { ErrorBoundary } from "./error-boundary.tsx";
import { startRoute } from "./route/route.ts";

const container = document.getElementById("app");
if (container === null) throw new Error("index.html has no element #app.");
startRoute();
createRoot(container).render(
  <StrictMode>
    <ErrorBoundary>
      <App />
    </ErrorBoundary>
  </StrictMode>,
);
