"""UDML Explorer: metric learning with few labels or none, made visible.

Start it with `udml app`, in a checkout with `make app`.
"""

from pathlib import Path

import streamlit as st

from udml_core.base.paths import prefer_package

prefer_package("pages", Path(__file__).parent)  # the environment may hold another package of this name

from pages.parts.shell.warming import wait_for_step

wait_for_step()  # before the imports below, so that they never happen in two threads at once

from pages.parts.draw.keys import listen_to_keys
from pages.parts.shell.address import drop_foreign_parameters
from pages.parts.shell.missing import MISSING, missing_pages
from pages.parts.shell.race_line import race_place, show_race_line
from pages.parts.shell.run_picker import begin_page, begin_sidebar, end_page
from pages.parts.shell.user_errors import show_user_errors
from pages.parts.shell.views import FORMER, PAGES, former_pages, view_in_address
from udml_core.base.malloc import keep_freed_memory
from udml_core.base.paths import ASSETS, expose
from udml_core.runs import runs_folder
from udml_core.work import jobs

ICON = ASSETS / "icon.png"

st.cache_resource(show_spinner=False)(keep_freed_memory)()  # The cache makes it run once per process.
expose(st.get_option("server.address"))
st.cache_resource(show_spinner=False)(jobs.wake)(runs_folder())  # Resume the queue after a restart.
st.set_page_config(page_title="UDML Explorer", page_icon=str(ICON), layout="wide", initial_sidebar_state=240)
st.logo(str(ICON), size="large")
st.html(ASSETS / "app.css")
if st.context.theme.type == "dark":  # White text on the primary color is hard to read on a dark page.
    st.html('<style>:is([data-testid^=stBaseButton-primary]:enabled, [data-testid=stPopoverButton][kind=primary], '
            '[data-baseweb="tag"]) * { color: #0b1220; }</style>')
st.set_option("client.showSidebarNavigation", True)  # false in the configuration, see there
# Streamlit shows the default page at / and nothing at its own path, which therefore must not be the redirected /home.
PAGES_SHOWN = [st.Page(f"pages/{name}.py", title=card.title, icon=f":material/{card.icon}:", help=card.help,
                       default=name == "home", url_path="start" if name == "home" else None)
               for name, card in PAGES.items()]
begin_sidebar()
of_race = race_place()
HIDDEN = [*former_pages()]
# The default page keeps its own path, start, for itself; it leads to the default page.
wrong = missing_pages({"start", *(known.url_path for known in (*PAGES_SHOWN, *HIDDEN))})
page = st.navigation([*PAGES_SHOWN, *HIDDEN, *wrong], expanded=True)
if page.url_path in FORMER:
    page.run()  # which opens the new address
view = MISSING if page in wrong else view_in_address(page.url_path or "home")
if page.title != PAGES_SHOWN[0].title:
    st.set_page_config(page_title=f"{page.title} · UDML Explorer")  # tabs and the history tell pages apart
drop_foreign_parameters(view)
listen_to_keys()
begin_page()
st.session_state["page"] = view  # a view without runs offers the example that shows it best
with show_user_errors():
    page.run()
end_page()
show_race_line(of_race)
