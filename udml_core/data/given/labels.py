"""Labels that users assign to images by name.

Each line of the log is one action: {"images": […], "class": …} assigns a class, {"images": […], "not": …} says that
images do not have a class, and {"undo": true} reverts the last action that was not reverted yet. "unseen": true marks
images that were named in bulk, without a look at each; "sure": true marks images whose class was doubted and is
right. "certainty": […] are the certainties of names that the app had proposed for the images when the user confirmed
or rejected them. Actions with the same "decision" are reverted together. {"groups": [[…], …]} changes groups by hand;
see `group_changes`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from udml_core.base.errors import UserError
from udml_core.data.dataset import Dataset
from udml_core.data.given.exclusions import KIND as EXCLUSIONS
from udml_core.data.given.exclusions import excluded_names
from udml_core.data.given.log import append_to_log, kept, read_actions

KIND = "labels"
LONGEST_CLASS = 100
"""Longest name of a class, in letters."""
GROUPS, MOST_PARTS = "groups", 300
"""Key of a change of groups, and the most groups that one change forms."""


class JudgedName(NamedTuple):
    """A name that the app proposed for an image, as a user judged it.

    Attributes:
        image: Name of the image.
        name: The proposed class.
        certainty: Certainty of the name, 0 to 1, when it was judged.
        is_right: Whether the user confirmed it.
    """

    image: str
    name: str
    certainty: float
    is_right: bool


def spelled_as(classes: Iterable[str], name: str) -> str:
    """Return the last class that has the letters of a name, in whatever case; empty without one."""
    return {known.casefold(): known for known in classes}.get(" ".join(name.split()).casefold(), "")


def cleaned_class(name: str) -> str:
    """Return the name of a class without needless spaces.

    Raises:
        UserError: It is empty or too long.
    """
    cleaned = " ".join(name.split())
    if not 1 <= len(cleaned) <= LONGEST_CLASS:
        raise UserError(f"A class needs a name of 1 to {LONGEST_CLASS} letters, got {len(cleaned)} letters. "
                        "Type a name.")
    return cleaned


def assign(dataset: Dataset, images: Iterable[int], name: str, is_unseen: bool = False,
           certainties: Sequence[float] = (), decision: str = "", is_sure: bool = False) -> str:
    """Assign images to a class in one action.

    Args:
        dataset: The data set.
        images: Indices of the images.
        name: Name of the class.
        is_unseen: Whether the images are named in bulk, without a look at each.
        certainties: Certainty of the class for each image, if the app proposed it and the user confirms it.
        decision: Joins actions that one undo reverts.
        is_sure: Whether the user says that doubts about the class are wrong.

    Returns:
        The name as stored. If an assigned class, or else a class of the data set, has the same letters in another case,
        its spelling is used.

    Raises:
        UserError: The name is empty or too long, or the log cannot be written.
    """
    cleaned = cleaned_class(name)
    stored_name = spelled_as((*dataset.class_names, *_stored_labels(dataset).values()), cleaned) or cleaned
    image_names = [dataset.names[index] for index in images]
    if image_names:
        more = ({"unseen": True} if is_unseen else {}) | ({"sure": True} if is_sure else {}) | _proposed(
            certainties) | _joined(decision)
        append_to_log(dataset, KIND, {"images": image_names, "class": stored_name} | more)
    return stored_name


def assign_beside(dataset: Dataset, images: Sequence[int], name: str, taken_out: Sequence[int],
                  is_unseen: bool = False) -> str:
    """Assign images of a group to a class, and reject it for the images taken out of it, in one decision.

    Args:
        dataset: The data set.
        images: Indices of the images.
        name: Name of the class.
        taken_out: Indices of the images that do not belong to the group.
        is_unseen: Whether the images are named in bulk, without a look at each.

    Returns:
        The name as stored; see `assign`.

    Raises:
        UserError: The name is empty or too long, or the log cannot be written.
    """
    decision = uuid.uuid4().hex if taken_out else ""
    if taken_out:
        reject(dataset, taken_out, assign(dataset, (), name), decision=decision)
    return assign(dataset, images, name, is_unseen=is_unseen, decision=decision)


def confirm_names(dataset: Dataset, names: Mapping[int, tuple[str, float]]) -> str:
    """Assign proposed classes to images in one decision, which one undo reverts.

    Args:
        dataset: The data set.
        names: The proposed class and its certainty of each image, by index.

    Returns:
        The decision, by which `undo` finds it.

    Raises:
        UserError: The log cannot be written.
    """
    decision = uuid.uuid4().hex
    for name in sorted({name for name, _ in names.values()}):
        own = {image: certainty for image, (label, certainty) in names.items() if label == name}
        assign(dataset, own, name, certainties=list(own.values()), decision=decision)
    return decision


def reject(dataset: Dataset, images: Iterable[int], name: str, certainties: Sequence[float] = (),
           decision: str = "") -> None:
    """Say in one action that images do not have a class; an assigned label of this class is removed.

    Args:
        dataset: The data set.
        images: Indices of the images.
        name: Name of the class.
        certainties: Certainty of the class for each image, if the app proposed it.
        decision: Joins actions that one undo reverts.

    Raises:
        UserError: The log cannot be written.
    """
    image_names = [dataset.names[index] for index in images]
    if image_names:
        append_to_log(dataset, KIND, {"images": image_names, "not": name} | _proposed(certainties) | _joined(decision))


def answer_names(dataset: Dataset, name: str, answers: Mapping[int, tuple[float, bool]]) -> None:
    """Confirm a proposed class for some images and reject it for others in one decision, which one undo reverts.

    Args:
        dataset: The data set.
        name: Name of the class.
        answers: The certainty of the class, and whether the image has it, of each image by index.

    Raises:
        UserError: The log cannot be written.
    """
    decision = uuid.uuid4().hex
    for is_right, store in ((False, reject), (True, assign)):  # a class that was confirmed last is asked about again
        own = {image: certainty for image, (certainty, answer) in answers.items() if answer == is_right}
        if own:
            store(dataset, own, name, certainties=list(own.values()), decision=decision)


def merge_classes(dataset: Dataset, old: str, new: str) -> int:
    """Assign a class to all images of another class in one action; return their number.

    Raises:
        UserError: The new name is empty or too long, or the log cannot be written.
    """
    images = [index for index, label in labels_by_index(dataset, _stored_labels(dataset)).items() if label == old]
    unseen = unseen_images(dataset)
    assign(dataset, images, new, is_unseen=any(dataset.names[image] in unseen for image in images))
    return len(images)


def _proposed(certainties: Sequence[float]) -> dict[str, Any]:
    return {"certainty": [round(float(value), 4) for value in certainties]} if len(certainties) else {}


def _joined(decision: str) -> dict[str, Any]:
    return {"decision": decision} if decision else {}


def undo(dataset: Dataset, decision: str = "") -> list[int]:
    """Revert the last action, with all actions of the same decision, and return the indices of the images.

    The indices are empty if there is no action to revert.

    Args:
        dataset: The data set.
        decision: Revert nothing unless the last action belongs to this decision.

    Raises:
        UserError: The log cannot be written.
    """
    actions = label_actions(dataset)
    last = _last_decision(actions)
    if not last or (decision and last[-1].get("decision") != decision):
        return []
    names: list[str] = []
    for action in last:
        append_to_log(dataset, KIND, {"undo": True})
        names += [name for part in action[GROUPS] for name in part] if GROUPS in action else action["images"]
    return list(labels_by_index(dataset, dict.fromkeys(names, "")))


def _last_decision(actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last action, with the actions directly before it that belong to the same decision."""
    decision = actions[-1].get("decision") if actions else None
    start = len(actions)
    while start and (start == len(actions) or (decision and actions[start - 1].get("decision") == decision)):
        start -= 1
    return actions[start:]


def can_undo(dataset: Dataset) -> bool:
    """Return whether there is an action to revert."""
    return bool(label_actions(dataset))


def answers_names(dataset: Dataset) -> bool:
    """Return whether the last action, which undo reverts, answered about names that the app proposed."""
    return any("certainty" in action for action in label_actions(dataset)[-1:])


def assigned_labels(dataset: Dataset) -> dict[str, str]:
    """Return the assigned class by image name; the last assignment of an image counts.

    An excluded image counts nowhere: it has its class again as soon as it is included.
    """
    return dict(_assigned(dataset)[0])


def assigned_now(dataset: Dataset) -> dict[int, str]:
    """Return the same by index, in order of assignment."""
    return dict(_assigned(dataset)[1])


def _assigned(dataset: Dataset) -> tuple[dict[str, str], dict[int, str]]:
    """Return the assigned class by image name and by index."""
    def compute() -> tuple[dict[str, str], dict[int, str]]:
        left_out = set(excluded_names(dataset))
        labels = {image: label for image, label in _stored_labels(dataset).items() if image not in left_out}
        return labels, labels_by_index(dataset, labels)

    return kept("assigned labels", dataset, [KIND, EXCLUSIONS], compute)


def _stored_labels(dataset: Dataset) -> dict[str, str]:
    """Return the assigned class by image name, also of excluded images."""
    labels: dict[str, str] = {}
    for action in _effective_actions(dataset):
        if "class" in action:
            labels.update(dict.fromkeys(action["images"], action["class"]))
        else:
            for image in action["images"]:
                if labels.get(image) == action["not"]:
                    del labels[image]
    known = dataset.indices_by_name(labels)
    return labels if len(known) == len(labels) else {image: labels[image] for image in labels if image in known}


def rejected_classes(dataset: Dataset) -> dict[str, set[str]]:
    """Return the classes that a user rejected for each image, by name; a later assignment of the class counts."""
    rejected: dict[str, set[str]] = {}
    for action in _effective_actions(dataset):
        for image in action["images"]:
            if "not" in action:
                rejected.setdefault(image, set()).add(action["not"])
            elif image in rejected:
                rejected[image].discard(action["class"])
    return {image: classes for image, classes in rejected.items() if classes}


def refused_classes(dataset: Dataset) -> tuple[str, ...]:
    """Return the classes that were only rejected since an image got them, in the order of the last rejections."""
    refused: dict[str, None] = {}
    for action in _effective_actions(dataset):
        refused.pop(action["class" if "class" in action else "not"], None)
        if "not" in action:
            refused[action["not"]] = None
    return tuple(refused)


def unseen_images(dataset: Dataset) -> set[str]:
    """Return the names of labeled images that were named in bulk and not looked at since."""
    unseen: set[str] = set()
    for action in _effective_actions(dataset):
        (unseen.update if action.get("unseen") else unseen.difference_update)(action["images"])
    return unseen


def sure_images(dataset: Dataset) -> set[str]:
    """Return the names of labeled images whose class the user confirmed when it was doubted."""
    sure: set[str] = set()
    for action in _effective_actions(dataset):
        (sure.update if action.get("sure") else sure.difference_update)(action["images"])
    return sure


def judged_names(dataset: Dataset) -> list[JudgedName]:
    """Return the names that the app proposed and a user judged; an image's last judgment about a class counts.

    Excluded images are left out.
    """
    left_out = set(excluded_names(dataset))
    judged: dict[tuple[str, str], JudgedName] = {}
    for action in _effective_actions(dataset):
        is_right = "class" in action
        name = action["class" if is_right else "not"]
        for image, certainty in zip(action["images"], action.get("certainty", ()), strict=False):
            judged[image, name] = JudgedName(image, name, float(certainty), is_right)
    return [found for found in judged.values() if found.image not in left_out]


def assigned_classes(dataset: Dataset) -> tuple[str, ...]:
    """Return every class that was assigned, in the order of the first assignments that were not reverted.

    A class that lost its images to another class stays in the list, so that the others keep their numbers, keyboard
    keys and colors.
    """
    assigned = [action for action in _effective_actions(dataset) if "class" in action]
    return tuple(dict.fromkeys(action["class"] for action in assigned))


def labels_by_index(dataset: Dataset, labels: Mapping[str, str]) -> dict[int, str]:
    """Convert labels by image name to labels by index.

    Images that the data set does not contain are dropped.
    """
    index_of = dataset.indices_by_name(labels)
    return {index_of[image]: label for image, label in labels.items() if image in index_of}


def label_actions(dataset: Dataset) -> list[dict[str, Any]]:
    """Return the assignments, rejections and changes of groups that were not reverted, in order."""
    return read_actions(dataset, KIND, is_label_action)


def _effective_actions(dataset: Dataset) -> list[dict[str, Any]]:
    """Return the assignments and rejections that were not reverted, in order."""
    return [action for action in label_actions(dataset) if GROUPS not in action]


def is_label_action(row: Mapping[str, Any]) -> bool:
    """Return whether a line assigns or rejects a class, or changes groups."""
    return _changes_groups(row) if GROUPS in row else _names_images(row)


def _changes_groups(row: Mapping[str, Any]) -> bool:
    """Return whether a line lists groups that are not empty and share no image."""
    parts = row[GROUPS]
    if not isinstance(parts, list) or len(parts) > MOST_PARTS or not all(
            isinstance(part, list) and part and all(isinstance(name, str) for name in part) for part in parts):
        return False
    return len({name for part in parts for name in part}) == sum(map(len, parts))


def _names_images(row: Mapping[str, Any]) -> bool:
    images, certainty = row.get("images"), row.get("certainty", [])
    return (isinstance(images, list) and all(isinstance(image, str) for image in images)
            and [isinstance(row[key], str) for key in ("class", "not") if key in row] == [True]
            and isinstance(certainty, list) and all(isinstance(value, int | float) for value in certainty))
