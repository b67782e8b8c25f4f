import { createRoot } from "react-dom/client";
import { Approvals, DeadLetters, Team, Tools } from "./desk.tsx";
import { Composer, Room } from "./room.tsx";

function Newsroom() {
  return (
    <>
      <header>
        <h1>Newsroom</h1>
        <Team />
      </header>
      <main>
        <Room />
        <Approvals />
        <Composer />
      </main>
      <aside aria-label="Desk" tabIndex={0}>
        <DeadLetters />
        <Tools />
      </aside>
    </>
  );
}

const root = document.querySelector("#page");
if (root) createRoot(root).render(<Newsroom />);
